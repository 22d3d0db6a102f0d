//! The batch that is being carried out, and its overlay, which readers read instead of buckets while a batch is
//! carried out.

use std::collections::BTreeMap;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

use heap::{BatchWord, HeapError};
use parking_lot::{Mutex, MutexGuard};
use pmem::{Medium, MediumError, Offset, Ticket};

use super::super::image::Image;
use super::record;
use crate::segmented::directory::Retired;
use crate::shared::Pointer;

/// The new contents of a batch's buckets.
#[derive(Debug)]
pub(in super::super) struct Overlay {
    images: BTreeMap<u64, Image>,
    is_decided: AtomicBool,
}

impl Overlay {
    /// Creates an overlay that is shown but not decided.
    pub(super) fn undecided(images: BTreeMap<u64, Image>) -> Overlay {
        Overlay { images, is_decided: AtomicBool::new(false) }
    }

    pub(super) fn images(&self) -> &BTreeMap<u64, Image> {
        &self.images
    }

    /// Decides the overlay: from now on readers use it.
    pub(super) fn decide(&self) {
        self.is_decided.store(true, Ordering::Release);
    }

    pub(in super::super) fn image(&self, at: Offset) -> Option<&Image> {
        self.images.get(&at.0)
    }

    #[inline(always)]
    pub(in super::super) fn is_decided(&self) -> bool {
        self.is_decided.load(Ordering::Acquire)
    }
}

/// The batch that is being carried out, and the turn to do so.
pub(in super::super) struct Batches {
    /// Held while a batch is carried out.
    turn: Mutex<()>,
    /// The batch that is being carried out, or null.
    overlay: Pointer<Overlay>,
}

/// The right to carry out a batch.
pub struct Turn<'a>(#[expect(dead_code, reason = "held for its end alone")] MutexGuard<'a, ()>);

impl Batches {
    /// Creates the state without a batch.
    pub(in super::super) fn none() -> Batches {
        Batches { turn: Mutex::default(), overlay: Pointer::new(ptr::null_mut()) }
    }

    /// Carries out a committed batch again. In a region opened for reading only, its overlay is for readers instead. No
    /// thread uses the table yet.
    pub(in super::super) fn recover<M: Medium>(medium: &M) -> Result<Batches, HeapError> {
        let Some(word) = BatchWord::load(medium, record::WORD)? else { return Ok(Batches::none()) };
        let images = record::read(medium, word.record)?;
        if !medium.is_writable() {
            let overlay = Box::new(Overlay::undecided(images));
            overlay.decide();
            let batches = Batches::none();
            batches.show(Box::into_raw(overlay));
            return Ok(batches);
        }
        images.iter().for_each(|(&at, image)| image.store(medium, Offset(at)));
        medium.order();
        record::clear(medium);
        medium.order();
        Ok(Batches::none())
    }

    /// Waits for the turn.
    pub(in super::super) fn turn(&self) -> Turn<'_> {
        Turn(self.turn.lock())
    }

    /// Returns the batch that is being carried out. It stays valid while the caller is pinned.
    #[inline(always)]
    pub(in super::super) fn overlay(&self) -> Option<&Overlay> {
        // SAFETY: it is null or from a box; a removed overlay is retired, and the caller is pinned.
        unsafe { self.overlay.load(Ordering::Acquire).as_ref() }
    }

    /// Shows readers an overlay, and returns the one before: that of an unfinished batch, or null. The caller has the
    /// turn.
    pub(super) fn show(&self, overlay: *mut Overlay) -> *mut Overlay {
        self.overlay.swap(overlay, Ordering::AcqRel)
    }

    /// Shows readers `before` instead of `overlay`. The caller has the turn, and retires the result.
    pub(super) fn take_away(&self, overlay: *mut Overlay, before: *mut Overlay) -> Retired<Overlay> {
        self.overlay.store(before, Ordering::Release);
        // SAFETY: it came from a box, and only the holder of the turn removes it.
        unsafe { Retired::new(overlay) }
    }

    /// Makes the decided batch durable, for a thread that read from its overlay.
    #[cold]
    pub(in super::super) fn settle<M: Medium>(&self, medium: &M) -> Result<(), MediumError> {
        if medium.is_writable() {
            let _ = medium.acknowledge_met(commit_ticket(medium))?;
        }
        Ok(())
    }

    /// Returns the ticket for the durability of a decided batch that a failed medium prevented from finishing.
    pub(in super::super) fn unfinished<M: Medium>(&self, medium: &M) -> Option<Ticket> {
        (medium.is_writable() && self.overlay().is_some_and(Overlay::is_decided)).then(|| commit_ticket(medium))
    }

    /// Returns a bucket as stored, or as the decided batch leaves it. A batch stays decided but not carried out in a
    /// store that is open for reading only, or whose medium has failed.
    pub(in super::super) fn decided_image<M: Medium>(&self, medium: &M, at: Offset) -> Image {
        let overlay = self.overlay().filter(|overlay| overlay.is_decided());
        overlay.and_then(|overlay| overlay.image(at)).copied().unwrap_or_else(|| Image::of(medium, at))
    }

    /// Returns buckets like [`Batches::decided_image`].
    pub(in super::super) fn decided_images(&self, images: Vec<(usize, Offset, Image)>) -> Vec<(usize, Offset, Image)> {
        let Some(overlay) = self.overlay().filter(|overlay| overlay.is_decided()) else { return images };
        let decide = |(number, at, image)| (number, at, overlay.image(at).copied().unwrap_or(image));
        images.into_iter().map(decide).collect()
    }
}

impl Drop for Batches {
    fn drop(&mut self) {
        let overlay = *self.overlay.get_mut();
        if !overlay.is_null() {
            // SAFETY: it came from a box, and no other thread uses the table any more.
            drop(unsafe { Box::from_raw(overlay) });
        }
    }
}

fn commit_ticket<M: Medium>(medium: &M) -> Ticket {
    medium.commit_published(record::WORD_AT, record::WORD_AT.0)
}
