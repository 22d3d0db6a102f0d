//! Windows of threads, and the other states that a thread announces.

use std::fmt;
use std::sync::atomic::Ordering;

use epoch::Announcement;

use crate::protocol::{self, ALL, BODY, CLOSER, SHUT};

/// The reason why the calling thread must not wait for a gate, or not write on its own: it is inside of this.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Inside {
    /// A write, or the gate lock of a store: another thread may wait for its end.
    Write,
    /// The body of a transaction, whose writes all go through the transaction.
    Body,
}

impl fmt::Display for Inside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Inside::Write => "the thread is inside a write",
            Inside::Body => "the thread is inside the body of a transaction",
        })
    }
}

impl std::error::Error for Inside {}

/// A guard: the calling thread writes, until the guard is dropped. Windows nest.
#[derive(Debug)]
#[must_use]
pub struct Window {
    announcement: Announcement,
    outer: u64,
}

impl Window {
    #[inline(always)]
    pub(crate) fn open(number: u64) -> Result<Window, Inside> {
        let announcement = Announcement::mine();
        let outer = announcement.word().load(Ordering::Relaxed);
        let number = if outer == SHUT { number } else { nested(outer, number)? };
        protocol::open(announcement.word(), number, || announcement.light_barrier());
        Ok(Window { announcement, outer })
    }

    /// Returns true if the thread had a window for the same gate already.
    pub(crate) fn is_within(&self, number: u64) -> bool {
        self.outer == number && number != ALL
    }
}

/// Returns true if the calling thread is inside a write: it has a window open or holds a gate lock, and another thread
/// may wait for it. Then it must not run a caller's code.
#[must_use]
pub fn is_writing() -> bool {
    !matches!(Announcement::mine().word().load(Ordering::Relaxed), SHUT | BODY)
}

/// Returns the value of a window that is opened within another.
#[cold]
fn nested(outer: u64, number: u64) -> Result<u64, Inside> {
    match outer {
        BODY => Err(Inside::Body),
        CLOSER => Err(Inside::Write),
        _ if outer == number => Ok(number),
        _ => Ok(ALL),
    }
}

impl Drop for Window {
    #[inline(always)]
    fn drop(&mut self) {
        protocol::shut(self.announcement.word(), self.outer);
    }
}

/// A guard: the calling thread runs the body of a transaction, until the guard is dropped. It opens no window.
#[derive(Debug)]
#[must_use]
pub struct Body {
    announcement: Announcement,
    outer: u64,
}

impl Body {
    /// Begins a body, on a thread that may hold the gate lock.
    ///
    /// # Errors
    /// [`Inside`] if the thread is inside a write or another body.
    pub fn begin() -> Result<Body, Inside> {
        let announcement = Announcement::mine();
        let outer = announcement.word().load(Ordering::Relaxed);
        if outer != CLOSER {
            idle()?;
        }
        announcement.word().store(BODY, Ordering::Relaxed);
        Ok(Body { announcement, outer })
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        protocol::shut(self.announcement.word(), self.outer);
    }
}

/// A guard: the calling thread holds a gate lock, until the guard is dropped.
#[derive(Debug)]
pub(crate) struct Closing(Announcement);

impl Closing {
    pub(crate) fn begin() -> Result<Closing, Inside> {
        let announcement = idle()?;
        announcement.word().store(CLOSER, Ordering::Relaxed);
        Ok(Closing(announcement))
    }
}

impl Drop for Closing {
    fn drop(&mut self) {
        protocol::shut(self.0.word(), SHUT);
    }
}

/// Returns the thread's announcement if the thread has nothing to announce.
pub(crate) fn idle() -> Result<Announcement, Inside> {
    let announcement = Announcement::mine();
    match announcement.word().load(Ordering::Relaxed) {
        SHUT => Ok(announcement),
        BODY => Err(Inside::Body),
        _ => Err(Inside::Write),
    }
}
