//! The buckets of all keys.

use pmem::Backoff;
use word::Word;

use super::bucket::{Bucket, LockedBucket};
use super::lines::{Line, Lines, share};

/// The buckets, and the function with which a thread waits for a bucket's lock.
pub(super) struct Buckets<W> {
    lines: Lines<W>,
    relax: fn(&mut Backoff),
}

impl<W: Word> Buckets<W> {
    pub(super) fn new(lines: Lines<W>, relax: fn(&mut Backoff)) -> Buckets<W> {
        Buckets { lines, relax }
    }

    /// Returns the buckets for a test of threads that wait in another way.
    #[cfg(all(test, not(miri)))]
    pub(super) fn relaxing_by(self, relax: fn(&mut Backoff)) -> Buckets<W> {
        Buckets { relax, ..self }
    }

    pub(super) fn relax(&self) -> fn(&mut Backoff) {
        self.relax
    }

    pub(super) fn lines(&self) -> &Lines<W> {
        &self.lines
    }

    #[inline(always)]
    fn line(&self, signature: u64) -> &Line<W> {
        &self.lines[share(signature, self.lines.len())]
    }

    #[inline(always)]
    pub(super) fn of(&self, signature: u64) -> Bucket<'_, W> {
        Bucket::of(self.line(signature))
    }

    #[inline(always)]
    pub(super) fn lock(&self, signature: u64) -> LockedBucket<'_, W> {
        Bucket::lock(self.of(signature), self.relax)
    }

    /// Locks one bucket after the other.
    pub(super) fn lock_in_turn(&self) -> impl Iterator<Item = LockedBucket<'_, W>> {
        self.lines.iter().map(|line| Bucket::of(line).lock(self.relax))
    }

    #[inline(always)]
    pub(super) fn prefetch(&self, signature: u64) {
        let line: *const Line<W> = self.line(signature);
        pmem::arch::prefetch(line.cast());
    }
}
