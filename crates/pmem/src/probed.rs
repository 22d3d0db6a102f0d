//! A medium with a probe: every call goes to the inner medium, and then to the probe.

use core::ptr::NonNull;
use core::sync::atomic::Ordering;
use core::time::Duration;

use crate::{
    Acknowledge, Bytes, Canary, Counts, Durability, Level, Medium, MediumError, Offset, Persist, Probe, Residency,
    Space, Span, Taken, Ticket, Waited,
};

/// The medium `M`, observed by the probe `P`.
#[derive(Debug)]
pub struct Probed<M, P> {
    inner: M,
    probe: P,
}

impl<M: Medium, P: Probe> Probed<M, P> {
    /// Returns `inner`, observed by `probe`.
    pub const fn with_probe(inner: M, probe: P) -> Probed<M, P> {
        Probed { inner, probe }
    }

    /// Returns the probe.
    pub const fn probe(&self) -> &P {
        &self.probe
    }

    /// Returns the observed medium.
    pub const fn inner(&self) -> &M {
        &self.inner
    }
}

// SAFETY: the memory is the inner medium's, and so are all promises about it.
unsafe impl<M: Medium, P: Probe> Bytes for Probed<M, P> {
    #[inline(always)]
    fn base(&self) -> NonNull<u8> {
        self.inner.base()
    }

    #[inline(always)]
    fn len_bytes(&self) -> u64 {
        self.inner.len_bytes()
    }

    fn is_writable(&self) -> bool {
        self.inner.is_writable()
    }

    fn store(&self, at: Offset, word: u64, ordering: Ordering) {
        self.inner.store(at, word, ordering);
    }

    fn compare_exchange(&self, at: Offset, current: u64, new: u64) -> Result<u64, u64> {
        self.inner.compare_exchange(at, current, new)
    }

    unsafe fn write(&self, at: Offset, bytes: &[u8]) {
        // SAFETY: the caller's promise, passed on.
        unsafe { self.inner.write(at, bytes) }
    }

    unsafe fn stream(&self, at: Offset, parts: &[&[u8]]) {
        // SAFETY: the caller's promise, passed on.
        unsafe { self.inner.stream(at, parts) }
        self.probe.streamed(at.span(parts.iter().map(|part| part.len() as u64).sum()));
    }

    unsafe fn overlay(&self, at: Offset, bytes: &[u8]) -> Result<(), MediumError> {
        // SAFETY: the caller's promise, passed on.
        unsafe { self.inner.overlay(at, bytes) }
    }

    #[inline(always)]
    fn load(&self, at: Offset, ordering: Ordering) -> u64 {
        let word = self.inner.load(at, ordering);
        self.probe.loaded(at.span(8));
        word
    }

    #[inline(always)]
    fn load4(&self, at: Offset) -> [u64; 4] {
        let words = self.inner.load4(at);
        self.probe.loaded(at.span(32));
        words
    }

    #[inline(always)]
    fn load_some<const COUNT: usize>(&self, at: Offset, numbers: [u8; COUNT]) -> [u64; COUNT] {
        let words = self.inner.load_some(at, numbers);
        numbers.into_iter().for_each(|i| self.probe.loaded(at.plus(8 * u64::from(i & 31)).span(8)));
        words
    }

    #[inline(always)]
    fn match4(&self, at: Offset, word: u64) -> u32 {
        let hits = self.inner.match4(at, word);
        self.probe.loaded(at.span(32));
        hits
    }

    #[inline(always)]
    fn acquire(&self) {
        self.inner.acquire();
    }

    #[inline(always)]
    fn check(&self, span: Span) -> Result<(), MediumError> {
        self.inner.check(span)
    }

    #[inline(always)]
    unsafe fn bytes(&self, span: Span) -> Result<&[u8], MediumError> {
        // SAFETY: the caller's promise, passed on.
        let bytes = unsafe { self.inner.bytes(span) }?;
        self.probe.read(span);
        Ok(bytes)
    }
}

impl<M: Medium, P: Probe> Persist for Probed<M, P> {
    fn durability(&self) -> Durability {
        self.inner.durability()
    }

    #[inline(always)]
    fn health(&self) -> Result<(), MediumError> {
        self.inner.health()
    }

    fn opens_durable(&self) -> bool {
        self.inner.opens_durable()
    }

    fn flush(&self, span: Span) {
        self.inner.flush(span);
        self.probe.flushed(span);
    }

    fn order(&self) {
        self.inner.order();
        self.probe.fenced();
    }

    fn publish(&self, words: &[(Offset, u64)], key: u64) -> Taken {
        let taken = self.inner.publish(words, key);
        self.probe.flushed(words[words.len() - 1].0.span(8));
        taken
    }

    fn commit_published(&self, at: Offset, key: u64) -> Ticket {
        let ticket = self.inner.commit_published(at, key);
        self.probe.flushed(at.span(8));
        self.probe.fenced();
        ticket
    }

    fn commit(&self, level: Level) -> Ticket {
        let ticket = self.inner.commit(level);
        self.probe.fenced();
        ticket
    }

    fn wait(&self, ticket: Ticket) -> Result<(), MediumError> {
        self.probe.waits();
        self.inner.wait(ticket)
    }

    fn sync(&self) -> Result<(), MediumError> {
        self.inner.sync()
    }
}

impl<M: Medium, P: Probe> Acknowledge for Probed<M, P> {
    fn acknowledge(&self, ticket: Ticket) -> Result<Waited, MediumError> {
        self.probe.waits();
        self.inner.acknowledge(ticket)
    }

    fn acknowledge_now(&self, ticket: Ticket) -> Result<Waited, MediumError> {
        self.inner.acknowledge_now(ticket)
    }

    fn deferred(&self) -> Option<Ticket> {
        self.inner.deferred()
    }
}

impl<M: Medium, P: Probe> Residency for Probed<M, P> {
    #[inline(always)]
    fn check_lost_ranges(&self) -> Result<(), MediumError> {
        self.inner.check_lost_ranges()
    }

    fn populate(&self, span: Span) {
        self.inner.populate(span);
    }

    fn collapse_pages(&self) -> Option<Duration> {
        self.inner.collapse_pages()
    }

    #[inline(always)]
    fn prefetch_for_stream(&self, span: Span) {
        self.inner.prefetch_for_stream(span);
    }

    #[inline(always)]
    fn peek(&self, at: Offset) -> u64 {
        let word = self.inner.peek(at);
        self.probe.loaded(at.span(8));
        word
    }

    fn prefetch(&self, span: Span) {
        self.inner.prefetch(span);
    }

    fn prefetch_peek(&self, at: Offset) {
        self.inner.prefetch_peek(at);
    }

    #[inline(always)]
    fn held<R>(&self, operate: impl FnOnce() -> R) -> R {
        self.inner.held(operate)
    }

    #[inline(always)]
    fn once<R>(&self, operate: impl FnOnce() -> R) -> R {
        self.inner.once(operate)
    }

    fn prefer(&self, span: Span, is_index: bool) {
        self.inner.prefer(span, is_index);
    }

    #[inline(always)]
    fn evicts(&self) -> bool {
        self.inner.evicts()
    }

    fn is_resident(&self, span: Span) -> bool {
        self.inner.is_resident(span)
    }

    fn request(&self, span: Span) {
        self.inner.request(span);
    }

    unsafe fn overwrite(&self, span: Span) {
        // SAFETY: the caller's promise.
        unsafe { self.inner.overwrite(span) };
    }

    #[inline(always)]
    fn prefetch_line(&self, at: Offset) {
        self.inner.prefetch_line(at);
        self.probe.asked_for(at);
    }
}

impl<M: Medium, P: Probe> Space for Probed<M, P> {
    fn prepare_growth(&self, to_bytes: u64) {
        self.inner.prepare_growth(to_bytes);
    }

    fn grow(&self, to_bytes: u64) -> Result<(), MediumError> {
        self.inner.grow(to_bytes)
    }

    unsafe fn discard(&self, span: Span) -> u64 {
        // SAFETY: the caller's promise, passed on.
        unsafe { self.inner.discard(span) }
    }

    fn allocate(&self, span: Span) -> Result<(), MediumError> {
        self.inner.allocate(span)
    }

    fn allocated_bytes(&self) -> Option<u64> {
        self.inner.allocated_bytes()
    }
}

impl<M: Medium, P: Probe> Medium for Probed<M, P> {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn is_journaled(&self) -> bool {
        self.inner.is_journaled()
    }

    fn breaks(&self, canary: Canary) -> bool {
        self.inner.breaks(canary)
    }

    fn counts(&self) -> Option<Counts> {
        self.probe.counts().or_else(|| self.inner.counts())
    }
}
