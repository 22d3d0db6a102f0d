//! Input of commands: a file, or standard input, whose reads a signal can interrupt.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::fd::AsFd;
use std::path::Path;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use crate::interrupt::Interrupt;

/// The path that means standard input.
const STDIN_NAME: &str = "-";

/// An open file, or standard input.
pub(crate) struct Input {
    file: File,
}

impl Input {
    /// Opens `path`; `-` is standard input.
    pub(crate) fn open(path: &Path) -> io::Result<Input> {
        let file = match is_stdin(path) {
            true => File::from(io::stdin().as_fd().try_clone_to_owned()?),
            false => File::open(path)?,
        };
        Ok(Input { file })
    }

    /// Returns the number of bytes left to read if the input is a regular file.
    pub(crate) fn len_bytes(&mut self) -> io::Result<Option<u64>> {
        let metadata = self.file.metadata()?;
        if !metadata.is_file() {
            return Ok(None);
        }
        Ok(Some(metadata.len().saturating_sub(self.file.stream_position()?)))
    }

    /// Returns a reader that ends with the input or at a signal.
    pub(crate) fn interruptible(self, interrupt: &Interrupt) -> Interruptible<'_> {
        Interruptible { file: self.file, interrupt }
    }
}

impl Read for Input {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.file.read(buffer)
    }
}

/// Returns true if `path` means standard input.
pub(crate) fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == STDIN_NAME
}

/// A reader that fails once a signal has arrived, because the input is then incomplete.
pub(crate) struct Interruptible<'a> {
    file: File,
    interrupt: &'a Interrupt,
}

impl Read for Interruptible<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut sources = [PollFd::new(&self.file, PollFlags::IN), PollFd::new(self.interrupt, PollFlags::IN)];
        while poll(&mut sources, None) == Err(Errno::INTR) {}
        if self.interrupt.signal().is_some() {
            return Err(io::Error::other("interrupted by a signal"));
        }
        self.file.read(buffer)
    }
}
