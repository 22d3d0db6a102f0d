//! Handles signals for all commands. A signal stops a command between two items, or while the command waits for input.
//!
//! | signal | effect |
//! |---|---|
//! | SIGINT, SIGTERM | the command stops, closes the store and reports the progress |
//! | SIGHUP | the same; `serve` reloads its certificates instead |
//! | SIGUSR1, SIGUSR2 | none; by default these signals would kill the process |
//! | SIGXFSZ | none: a file at the process's size limit is an error, as a full disk is |
//! | SIGBUS | a line on stderr names the mapped file, then the process ends (`pmem_os::report_bus_errors`) |

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

/// Installs handlers for signals that would end the process without an error message.
pub(crate) fn handle_fatal_signals() -> io::Result<()> {
    let ignored = [SIGXFSZ, SIGUSR1, SIGUSR2];
    ignored.iter().try_for_each(|number| flag::register(*number, Arc::new(AtomicBool::new(false))).map(drop))?;
    pmem_os::report_bus_errors()
}

/// The state of the signals that end a command.
pub(crate) struct Interrupt {
    signal: Arc<AtomicUsize>,
    wake: UnixStream,
}

impl Interrupt {
    /// Installs handlers: from now on the signals no longer kill the process.
    pub(crate) fn install() -> Result<Interrupt, Failure> {
        Interrupt::of(&[SIGINT, SIGTERM, SIGHUP])
    }

    /// Like [`Interrupt::install`], without SIGHUP, for a command that handles it separately.
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

    /// Waits for a signal.
    pub(crate) fn wait(&self) -> io::Result<()> {
        while self.signal().is_none() {
            match poll(&mut [PollFd::new(self, PollFlags::IN)], None) {
                Err(Errno::INTR) | Ok(_) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Returns the number of the signal that has arrived, if any.
    pub(crate) fn signal(&self) -> Option<u8> {
        u8::try_from(self.signal.load(Ordering::Relaxed)).ok().filter(|&signal| signal != 0)
    }

    /// Returns `Break` once a signal has arrived: the result of a progress callback.
    pub(crate) fn flow(&self) -> ControlFlow<()> {
        self.signal().map_or(ControlFlow::Continue(()), |_| ControlFlow::Break(()))
    }

    /// Returns an error if a signal has arrived; `done` describes the progress of the command.
    pub(crate) fn check(&self, done: impl FnOnce() -> String) -> Result<(), Failure> {
        self.signal().map_or(Ok(()), |signal| Err(Failure::Interrupted { signal, done: done() }))
    }
}

/// Readable once a signal has arrived.
impl AsFd for Interrupt {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }
}
