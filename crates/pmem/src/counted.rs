//! Counts the operations of a medium.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::{Medium, Probe, Probed, Span, lines};

/// A medium whose flushes and fences are counted (systems.md, H8: a put or update persists twice, a delete once).
pub type Counted<M> = Probed<M, PersistCounts>;

/// The number of calls of each kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Lines whose write-back was started, by `flush`, `publish` or `stream`.
    pub flushed_line_count: u64,
    /// Fences: `order` and `commit`.
    pub fence_count: u64,
    /// Bytes written by non-temporal stores.
    pub streamed_bytes: u64,
}

/// The counters behind [`Counts`], shared by all threads.
#[derive(Debug, Default)]
pub struct PersistCounts {
    flushed_line_count: AtomicU64,
    fence_count: AtomicU64,
    streamed_bytes: AtomicU64,
}

impl<M: Medium> Counted<M> {
    /// Counts the operations of `inner` from zero.
    pub fn new(inner: M) -> Counted<M> {
        Probed::with_probe(inner, PersistCounts::default())
    }
}

impl Probe for PersistCounts {
    fn flushed(&self, span: Span) {
        self.flushed_line_count.fetch_add(lines(span).count() as u64, Ordering::Relaxed);
    }

    fn streamed(&self, span: Span) {
        self.flushed(span);
        self.streamed_bytes.fetch_add(span.len_bytes, Ordering::Relaxed);
    }

    fn fenced(&self) {
        self.fence_count.fetch_add(1, Ordering::Relaxed);
    }

    fn counts(&self) -> Option<Counts> {
        Some(Counts {
            flushed_line_count: self.flushed_line_count.load(Ordering::Relaxed),
            fence_count: self.fence_count.load(Ordering::Relaxed),
            streamed_bytes: self.streamed_bytes.load(Ordering::Relaxed),
        })
    }
}
