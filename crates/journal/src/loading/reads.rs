//! Pages that threads have requested before they use them, and the threads that read them: a disk serves many requests
//! at once quickly, and single requests slowly.

use std::collections::VecDeque;

use parking_lot::{Condvar, Mutex};

use super::paging::Usage;

/// Threads that read: about as many requests as a disk serves at once.
pub(crate) const READER_COUNT: usize = 32;

/// Requests that wait for a thread. The requester reads further ones itself, when it uses them.
const REQUEST_COUNT_MAX: usize = 1024;

/// The requests of a journal.
#[derive(Debug, Default)]
pub(super) struct Reads {
    pages: Mutex<VecDeque<(u64, Usage)>>,
    changed: Condvar,
}

impl Reads {
    /// Requests a page.
    pub(super) fn request(&self, page: u64, usage: Usage) {
        let mut pages = self.pages.lock();
        if pages.len() < REQUEST_COUNT_MAX {
            pages.push_back((page, usage));
            self.changed.notify_one();
        }
    }

    /// Returns the next page, once there is one; `None` if `is_over`.
    pub(super) fn next(&self, is_over: impl Fn() -> bool) -> Option<(u64, Usage)> {
        let mut pages = self.pages.lock();
        while !is_over() {
            match pages.pop_front() {
                None => self.changed.wait(&mut pages),
                request => return request,
            }
        }
        None
    }

    /// Makes the threads check whether it is over.
    pub(super) fn wake(&self) {
        drop(self.pages.lock());
        self.changed.notify_all();
    }
}
