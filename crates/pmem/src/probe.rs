//! Probes: observers of the calls of a medium.

use crate::{Counts, Offset, Span};

/// An observer that is called after the inner medium has done an operation.
pub trait Probe: Send + Sync + 'static {
    /// Called after `span` was flushed.
    fn flushed(&self, _span: Span) {}
    /// Called after `span` was written with non-temporal stores, and so flushed.
    fn streamed(&self, _span: Span) {}
    /// Called after a fence: `order` or `commit`.
    fn fenced(&self) {}
    /// Called before a wait.
    fn waits(&self) {}
    /// Called before the bytes of an item are read, which are in the region.
    fn read(&self, _span: Span) {}
    /// Called after words were loaded.
    fn loaded(&self, _span: Span) {}
    /// Called after a prefetch of the line of `_at`.
    fn asked_for(&self, _at: Offset) {}
    /// Returns the counts, if this probe counts.
    fn counts(&self) -> Option<Counts> {
        None
    }
}

/// An optional probe.
impl<P: Probe> Probe for Option<P> {
    fn flushed(&self, span: Span) {
        self.iter().for_each(|probe| probe.flushed(span));
    }

    fn streamed(&self, span: Span) {
        self.iter().for_each(|probe| probe.streamed(span));
    }

    fn fenced(&self) {
        self.iter().for_each(P::fenced);
    }

    fn waits(&self) {
        self.iter().for_each(P::waits);
    }

    fn read(&self, span: Span) {
        self.iter().for_each(|probe| probe.read(span));
    }

    fn loaded(&self, span: Span) {
        self.iter().for_each(|probe| probe.loaded(span));
    }

    fn asked_for(&self, at: Offset) {
        self.iter().for_each(|probe| probe.asked_for(at));
    }

    fn counts(&self) -> Option<Counts> {
        self.as_ref()?.counts()
    }
}

/// Two probes, called one after the other.
impl<P: Probe, Q: Probe> Probe for (P, Q) {
    fn flushed(&self, span: Span) {
        self.0.flushed(span);
        self.1.flushed(span);
    }

    fn streamed(&self, span: Span) {
        self.0.streamed(span);
        self.1.streamed(span);
    }

    fn fenced(&self) {
        self.0.fenced();
        self.1.fenced();
    }

    fn waits(&self) {
        self.0.waits();
        self.1.waits();
    }

    fn read(&self, span: Span) {
        self.0.read(span);
        self.1.read(span);
    }

    fn loaded(&self, span: Span) {
        self.0.loaded(span);
        self.1.loaded(span);
    }

    fn asked_for(&self, at: Offset) {
        self.0.asked_for(at);
        self.1.asked_for(at);
    }

    fn counts(&self) -> Option<Counts> {
        self.0.counts().or_else(|| self.1.counts())
    }
}
