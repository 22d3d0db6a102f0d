//! The overlay, which readers read instead of buckets while a batch is carried out.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use pmem::{Medium, MediumError, Offset, Ticket};

use super::super::BlockHash;
use super::super::image::Image;
use super::record::WORD_AT;

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

impl BlockHash {
    /// Makes the decided batch durable, for a thread that read from its overlay.
    #[cold]
    pub(in super::super) fn settle_batch<M: Medium>(&self, medium: &M) -> Result<(), MediumError> {
        if medium.is_writable() {
            let _ = medium.acknowledge_met(self.batch_ticket(medium))?;
        }
        Ok(())
    }

    /// Returns the ticket for the durability of the decided batch.
    pub(in super::super) fn batch_ticket<M: Medium>(&self, medium: &M) -> Ticket {
        medium.commit_published(WORD_AT, WORD_AT.0)
    }

    /// Returns a bucket as stored, or as the decided batch leaves it.
    pub(in super::super) fn decided_image<M: Medium>(&self, medium: &M, at: Offset) -> Image {
        let overlay = self.overlay().filter(|overlay| overlay.is_decided());
        overlay.and_then(|overlay| overlay.image(at)).copied().unwrap_or_else(|| Image::of(medium, at))
    }
}
