//! Holes: space of a mapped region that is freed, and allocated again.
//!
//! A store to a page without space allocates it silently, and ends in a signal if the file system is full. So a
//! caller that has freed pages allocates their space again, here, before the first store; a full file system is an
//! error then. The mapping does not change: a hole reads as zeros.
//!
//! The kernel may do either late. After a crash a hole may be filled, or a filled one be a hole again, except pages
//! that were stored to: on DAX, the fault that made such a page writable waited for the file system (MAP_SYNC). On
//! other storage, nothing is promised after a crash of the machine.

use std::sync::atomic::Ordering;

use pmem::{MediumError, Span};

use crate::Mapped;
use crate::error::growth_error;
use crate::growth::{pages_touched, pages_within};

impl Mapped {
    /// See [`pmem::Space::discard`].
    pub(crate) fn punch(&self, span: Span) -> u64 {
        let pages = pages_within(span, self.len_bytes.load(Ordering::Acquire), self.backing.page_bytes());
        let may_punch = self.writable && self.in_owner() && !pages.is_empty();
        if !may_punch || !self.backing.punch(pages.clone()) {
            return 0;
        }
        self.small_pages.note_hole();
        pages.end - pages.start
    }

    /// See [`pmem::Space::allocate`].
    pub(crate) fn fill(&self, span: Span) -> Result<(), MediumError> {
        let region_bytes = self.len_bytes.load(Ordering::Acquire);
        let pages = pages_touched(span, region_bytes, self.backing.page_bytes());
        if !self.writable || pages.is_empty() {
            return Ok(());
        }
        self.backing.fill_holes(pages).map_err(|errno| growth_error(errno, region_bytes))
    }
}
