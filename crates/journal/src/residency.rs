//! The pages of the journaled region that are in memory.

use std::sync::atomic::Ordering;

use pmem::{Bytes, MediumError, Offset, Residency, Span};

use crate::loading::Once;
use crate::region::PAGE_BYTES;
use crate::{File, Journaled};

impl<F: File> Residency for Journaled<F> {
    #[inline(always)]
    fn check_lost_ranges(&self) -> Result<(), MediumError> {
        self.journal.loader.losses()
    }

    fn populate(&self, span: Span) {
        let end = span.end().unwrap_or(u64::MAX).min(self.len_bytes());
        let start = span.start.0 - span.start.0 % PAGE_BYTES;
        if start < end && self.in_owner() && !self.journal.loader.is_paged() {
            self.journal.loader.region().memory.populate(start..end.next_multiple_of(PAGE_BYTES));
        }
    }

    #[inline]
    fn peek(&self, at: Offset) -> u64 {
        let is_absent = at.0 >= self.journal.loader.region().readable_bytes();
        let peeked = if is_absent { self.journal.loader.peek(at) } else { None };
        peeked.unwrap_or_else(|| self.load(at, Ordering::Relaxed))
    }

    fn prefetch(&self, span: Span) {
        self.journal.loader.expect(span);
    }

    #[inline]
    fn held<R>(&self, operate: impl FnOnce() -> R) -> R {
        let _pin = self.hold();
        operate()
    }

    #[inline]
    fn once<R>(&self, operate: impl FnOnce() -> R) -> R {
        let _scope = self.journal.loader.is_paged().then(Once::begin);
        operate()
    }

    fn prefer(&self, span: Span, is_index: bool) {
        self.journal.loader.pager().into_iter().for_each(|pager| pager.prefer(span, is_index));
    }

    #[inline(always)]
    fn evicts(&self) -> bool {
        self.journal.loader.is_paged()
    }

    fn is_resident(&self, span: Span) -> bool {
        self.journal.loader.pager().is_none_or(|pager| pager.is_resident(span))
    }

    fn request(&self, span: Span) {
        self.journal.loader.request(span);
    }

    unsafe fn overwrite(&self, span: Span) {
        self.overwrite_pages(span);
    }

    fn prefetch_peek(&self, at: Offset) {
        self.journal.loader.expect_page(at);
    }
}
