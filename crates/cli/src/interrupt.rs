//! SIGINT and SIGTERM: a command stops between two items, and wakes from waiting for input. SIGXFSZ: it goes on.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use signal_hook::consts::{SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::{flag, low_level::pipe};

/// A file that gets too long for the process's limit is an error from now on, as on a full disk, and not its end.
pub(crate) fn survive_limit_on_files() -> io::Result<()> {
    flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false))).map(drop)
}

/// Tells whether one of the signals came.
pub(crate) struct Interrupt {
    signal: Arc<AtomicUsize>,
    wake: UnixStream,
}

impl Interrupt {
    /// From now on the signals no longer kill the process.
    pub(crate) fn install() -> io::Result<Interrupt> {
        let (wake, woken) = UnixStream::pair()?;
        let signal = Arc::new(AtomicUsize::new(0));
        for number in [SIGINT, SIGTERM] {
            flag::register_usize(number, Arc::clone(&signal), number as usize)?;
            pipe::register(number, woken.try_clone()?)?;
        }
        Ok(Interrupt { signal, wake })
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
}

/// Readable once a signal came.
impl AsFd for Interrupt {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }
}
