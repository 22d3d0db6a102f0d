//! The region as a whole: what a region is, whether one is whole, how it grows.
//!
//! # Growth
//! 1. The medium grows. *Crash:* bytes beyond the region, which nothing uses.
//! 2. Superblock copy A states the new length, order; copy B, order. *Crash:* one copy is torn or older; the other is
//!    used and the bad one rewritten. Either length is right, since the mark lies below both. The second order is for
//!    the next growth, which must not find both copies torn.
//! 3. Only then does [`Region::len_bytes`] tell, and the mark may move past the old length.
//!
//! The step is 4 MiB (`docs/decisions/0011-grow-regions-by-4-mib-ahead-of-writers.md`), and the background's longer where there is time
//! (`docs/decisions/0011-grow-regions-by-4-mib-ahead-of-writers.md`).
//!
//! # Features
//! A flag is set before anything is written that a program must know it for, and never taken back.
//!
//! | after | a crash leaves |
//! |---|---|
//! | superblock copy A with the flag; ordered | copy A torn: B is used and A rewritten. Else the flag, and nothing that needs it |
//! | copy B; ordered | the flag |
//! | what needs it | the flag, and that or not |
//!
//! # Opening
//! Two copies are read, the better one is used, and the other is rewritten if it differs and the medium is writable, once
//! the medium's length has confirmed the better one. The better one is made durable first, since a killed process may have
//! left it seen and not durable. So a crash in the rewriting leaves the better copy as it was.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use pmem::{Durability, Medium, MediumError};

use crate::canary;
use crate::layout::{FORMAT_MARK, FORMAT_UNFINISHED, REGION_BYTES_MAX, SUPERBLOCK_COPIES, UNIT_BYTES};
use crate::lock::Spin;
use crate::superblock::{FEATURE_JOURNAL, Superblock};
use crate::{EngineNumber, HeapError, state};

/// A region grows by two huge pages at a time, if no more is wanted: a writer who has to wait for fresh memory waits a few
/// milliseconds, and little is grown in vain.
pub(crate) const GROWTH_BYTES: u64 = 4 << 20;

/// What a medium holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Found {
    /// Nothing, or a format that did not finish: it may be formatted.
    Fresh,
    /// A region that can be opened, as far as its superblock tells.
    Formatted,
}

/// The identity and the length of a region.
pub struct Region {
    /// Held while the region grows, which takes as long as the medium does.
    superblock: Spin<Superblock>,
    len_bytes: AtomicU64,
    generation: AtomicU32,
    /// The flags that the durable superblock states.
    features: AtomicU32,
}

impl Region {
    /// Tells what a medium holds. Writes nothing.
    ///
    /// # Errors
    /// Whatever speaks against opening and against formatting it.
    pub fn probe<M: Medium>(medium: &M) -> Result<Found, HeapError> {
        if is_fresh(medium) {
            return Ok(Found::Fresh);
        }
        let superblock = Superblock::load(medium)?.superblock;
        confirm_journal(medium, &superblock)?;
        confirm_length(medium, &superblock)?;
        if medium.load(FORMAT_MARK, Ordering::Acquire) != 0 {
            return Err(HeapError::Damaged { offset: FORMAT_MARK.0, what: "the format mark is neither set nor clear" });
        }
        Ok(Found::Formatted)
    }

    /// Whose region it is. Writes nothing.
    ///
    /// # Errors
    /// Whatever speaks against opening it; [`HeapError::Unformatted`].
    pub fn engine<M: Medium>(medium: &M) -> Result<EngineNumber, HeapError> {
        match Region::probe(medium)? {
            Found::Fresh => Err(HeapError::Unformatted),
            Found::Formatted => Ok(Superblock::load(medium)?.superblock.engine),
        }
    }

    /// What the medium gave when the region was made, if it says; a region that has a journal does not. It is for the caller that
    /// opens the region, which alone knows what is asked for.
    pub fn made_for<M: Medium>(medium: &M) -> Option<Durability> {
        if medium.len_bytes() < UNIT_BYTES { None } else { state::load_made_for(medium) }
    }

    /// A region of this superblock, which need not be stored yet.
    pub(crate) fn new(superblock: Superblock, generation: u16) -> Region {
        let len_bytes = AtomicU64::new(superblock.region_bytes);
        let (generation, features) = (AtomicU32::new(u32::from(generation)), AtomicU32::new(superblock.features));
        Region { superblock: Spin::new(superblock), len_bytes, generation, features }
    }

    pub(crate) fn open<M: Medium>(medium: &M, wanted: EngineNumber) -> Result<Region, HeapError> {
        if Region::probe(medium)? == Found::Fresh {
            return Err(HeapError::Unformatted);
        }
        let chosen = Superblock::load(medium)?;
        chosen.superblock.confirm_engine(wanted)?;
        if let Some(stale) = chosen.stale.filter(|_| medium.is_writable()) {
            if !medium.breaks(canary::HEAD_LEFT_AS_FOUND) {
                SUPERBLOCK_COPIES
                    .iter()
                    .filter(|copy| **copy != stale)
                    .for_each(|copy| Superblock::flush(medium, *copy));
                medium.order();
            }
            chosen.superblock.store(medium, stale);
            medium.order();
        }
        Ok(Region::new(chosen.superblock, state::load_generation(medium)?))
    }

    pub(crate) fn superblock(&self) -> Superblock {
        *self.superblock.lock()
    }

    /// The length that the durable superblock states.
    pub(crate) fn len_bytes(&self) -> u64 {
        self.len_bytes.load(Ordering::Acquire)
    }

    pub(crate) fn generation(&self) -> u16 {
        self.generation.load(Ordering::Acquire) as u16
    }

    /// Stores a generation, ordered before whatever follows.
    pub(crate) fn set_generation<M: Medium>(&self, medium: &M, generation: u16) {
        state::store_generation(medium, generation);
        medium.order();
        self.generation.store(u32::from(generation), Ordering::Release);
    }

    /// Stores both copies of the superblock, durable one after the other.
    pub(crate) fn store_superblock<M: Medium>(&self, medium: &M) {
        store_copies(medium, &self.superblock.lock());
    }

    #[inline]
    pub(crate) fn has_features(&self, features: u32) -> bool {
        self.features.load(Ordering::Acquire) & features == features
    }

    /// Sets flags, unless they are set: see the module's head.
    pub(crate) fn set_features<M: Medium>(&self, medium: &M, features: u32) {
        let mut superblock = self.superblock.lock();
        if superblock.features & features == features {
            return;
        }
        superblock.features |= features;
        superblock.sequence += 1;
        if !medium.breaks(canary::FEATURE_NOT_STORED) {
            store_copies(medium, &superblock);
        }
        self.features.store(superblock.features, Ordering::Release);
    }

    /// Grows the region to `wanted_bytes` at least; by `step_bytes` if the medium has room for it, or by [`GROWTH_BYTES`], or else to
    /// that. After a step the length is a multiple of [`GROWTH_BYTES`], so that huge pages lie whole in each growth.
    pub(crate) fn grow<M: Medium>(&self, medium: &M, wanted_bytes: u64, step_bytes: u64) -> Result<(), HeapError> {
        let mut superblock = self.superblock.lock();
        if superblock.region_bytes >= wanted_bytes {
            return Ok(());
        }
        superblock.region_bytes = grow_medium(medium, superblock.region_bytes, wanted_bytes, step_bytes)?;
        superblock.sequence += 1;
        if !medium.breaks(canary::GROWTH_BEFORE_SUPERBLOCK) {
            store_copies(medium, &superblock);
        }
        self.len_bytes.store(superblock.region_bytes, Ordering::Release);
        Ok(())
    }
}

/// Step 1 of growth: the length reached.
fn grow_medium<M: Medium>(
    medium: &M,
    present_bytes: u64,
    wanted_bytes: u64,
    step_bytes: u64,
) -> Result<u64, MediumError> {
    if wanted_bytes > REGION_BYTES_MAX {
        return Err(MediumError::Limit { wanted_bytes, limit_bytes: REGION_BYTES_MAX });
    }
    let least_bytes = wanted_bytes.next_multiple_of(UNIT_BYTES);
    let end = |step_bytes: u64| ((present_bytes + step_bytes) / GROWTH_BYTES * GROWTH_BYTES).min(REGION_BYTES_MAX);
    let ends = [end(step_bytes), end(GROWTH_BYTES)].map(|end| end.max(least_bytes));
    for target_bytes in ends {
        if target_bytes > least_bytes && medium.grow(target_bytes).is_ok() {
            return Ok(target_bytes);
        }
    }
    medium.grow(least_bytes).map(|()| least_bytes)
}

/// Step 2 of growth.
fn store_copies<M: Medium>(medium: &M, superblock: &Superblock) {
    let [a, b] = SUPERBLOCK_COPIES;
    superblock.store(medium, a);
    if !medium.breaks(canary::SUPERBLOCK_COPIES_TOGETHER) {
        medium.order();
    }
    superblock.store(medium, b);
    medium.order();
}

/// The base of a journal by itself lacks what only the log has.
fn confirm_journal<M: Medium>(medium: &M, superblock: &Superblock) -> Result<(), HeapError> {
    match (superblock.features & FEATURE_JOURNAL != 0, medium.is_journaled()) {
        (true, false) => Err(HeapError::NeedsJournal),
        (false, true) => Err(HeapError::NotJournaled),
        _ => Ok(()),
    }
}

fn confirm_length<M: Medium>(medium: &M, superblock: &Superblock) -> Result<(), HeapError> {
    let (region_bytes, file_bytes) = (superblock.region_bytes, medium.len_bytes());
    if region_bytes > file_bytes { Err(HeapError::Truncated { region_bytes, file_bytes }) } else { Ok(()) }
}

/// True if a format began and did not finish, or nothing was ever written to the head.
fn is_fresh<M: Medium>(medium: &M) -> bool {
    let head_bytes = medium.len_bytes().min(UNIT_BYTES) & !7;
    let mut words = (0..head_bytes).step_by(8).map(|at| medium.load(pmem::Offset(at), Ordering::Relaxed));
    let unfinished = head_bytes > FORMAT_MARK.0 && medium.load(FORMAT_MARK, Ordering::Acquire) == FORMAT_UNFINISHED;
    unfinished || words.all(|word| word == 0)
}
