//! Signals, for all commands.
//!
//! | signal | effect |
//! |---|---|
//! | SIGINT, SIGTERM | a command stops between two items, wakes from waiting for input, closes the store and reports the progress made |
//! | SIGHUP | the same; `serve` reads its certificates again instead |
//! | SIGUSR1, SIGUSR2 | nothing: they mean nothing here, and would kill a process by default |
//! | SIGXFSZ | nothing: a file at the process's limit is an error, as a full disk is |
//! | SIGBUS | a line that names the mapped file, and the end of the process (`pmem_os::report_bus_errors`) |

use std::io;
use std::ops::ControlFlow;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGXFSZ};
use signal_hook::{flag, low_level::pipe};

use crate::failure::Failure;

/// Signals that must not end a command without a word.
pub(crate) fn survive_others() -> io::Result<()> {
    let ignored = [SIGXFSZ, SIGUSR1, SIGUSR2];
    ignored.iter().try_for_each(|number| flag::register(*number, Arc::new(AtomicBool::new(false))).map(drop))?;
    pmem_os::report_bus_errors()
}

/// Notices the signals that end a command.
pub(crate) struct Interrupt {
    signal: Arc<AtomicUsize>,
    wake: UnixStream,
}

impl Interrupt {
    /// From now on the signals no longer kill the process.
    pub(crate) fn install() -> Result<Interrupt, Failure> {
        Interrupt::of(&[SIGINT, SIGTERM, SIGHUP])
    }

    /// As [`Interrupt::install`], for a command to which SIGHUP means something else.
    pub(crate) fn install_but_for_hangups() -> Result<Interrupt, Failure> {
        Interrupt::of(&[SIGINT, SIGTERM])
    }

    fn of(numbers: &[i32]) -> Result<Interrupt, Failure> {
        let install = || {
            let (wake, woken) = UnixStream::pair()?;
            let signal = Arc::new(AtomicUsize::new(0));
            for &number in numbers {
                flag::register_usize(number, Arc::clone(&signal), number as usize)?;
                pipe::register(number, woken.try_clone()?)?;
            }
            Ok(Interrupt { signal, wake })
        };
        install().map_err(Failure::at_signals)
    }

    /// Waits until a signal comes.
    pub(crate) fn wait(&self) -> io::Result<()> {
        while self.signal().is_none() {
            match poll(&mut [PollFd::new(self, PollFlags::IN)], None) {
                Err(Errno::INTR) | Ok(_) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// The signal that came.
    pub(crate) fn signal(&self) -> Option<u8> {
        u8::try_from(self.signal.load(Ordering::Relaxed)).ok().filter(|&signal| signal != 0)
    }

    /// The answer to a work that shows its progress: it stops once a signal came.
    pub(crate) fn flow(&self) -> ControlFlow<()> {
        self.signal().map_or(ControlFlow::Continue(()), |_| ControlFlow::Break(()))
    }

    /// An error if a signal came; `done` says how far the command came.
    pub(crate) fn check(&self, done: impl FnOnce() -> String) -> Result<(), Failure> {
        self.signal().map_or(Ok(()), |signal| Err(Failure::Interrupted { signal, done: done() }))
    }
}

/// Readable once a signal came.
impl AsFd for Interrupt {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }
}
