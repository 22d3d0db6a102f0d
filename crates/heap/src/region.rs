//! The region: identity, check of the superblock, and growth.
//!
//! # Growth
//! 1. The medium grows. *Crash:* unused bytes beyond the region.
//! 2. Superblock copy A records the new length, order; copy B, order. *Crash:* one copy is torn or older; the other
//!    is used and the bad one rewritten. Either length is correct, because the mark is below both. The second order
//!    protects the next growth, which must not find both copies torn.
//! 3. Only then does [`Region::len_bytes`] return the new length, and the mark may move past the old one.
//!
//! A step is 4 MiB (`docs/decisions/0011-grow-regions-by-4-mib-ahead-of-writers.md`). The background takes longer steps
//! if there is time (`docs/decisions/0011-grow-regions-by-4-mib-ahead-of-writers.md`).
//!
//! # Features
//! A flag is set before anything is written that requires a program to support it, and is never cleared.
//!
//! | after | a crash leaves |
//! |---|---|
//! | superblock copy A with the flag; ordered | copy A torn: B is used, A rewritten. Otherwise only the flag |
//! | copy B; ordered | the flag |
//! | the data that needs it | the flag, with or without the data |
//!
//! # Opening
//! Both copies are read, and the better one is used. If the other copy differs and the medium is writable, it is
//! rewritten, once the medium's length has confirmed the better one. The better copy is made durable first, because a
//! killed process may have left it visible but not durable. So a crash during the rewriting leaves the better copy as
//! it was.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use pmem::{Durability, Medium, MediumError};

use crate::canary;
use crate::layout::{FORMAT_MARK, FORMAT_UNFINISHED, REGION_BYTES_MAX, SNAPSHOT_EPOCH, SUPERBLOCK_COPIES, UNIT_BYTES};
use crate::lock::Spin;
use crate::superblock::{FEATURE_JOURNAL, Superblock};
use crate::{EngineNumber, HeapError, state};

/// A region grows by two huge pages at a time unless more is needed: a writer that waits for fresh memory waits a few
/// milliseconds, and little space is wasted.
pub(crate) const GROWTH_BYTES: u64 = 4 << 20;

/// The contents of a medium.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Found {
    /// Nothing, or an unfinished format: it may be formatted.
    Fresh,
    /// A region that can be opened, according to its superblock.
    Formatted,
}

/// The identity and the length of a region.
pub struct Region {
    /// Held while the region grows, which may block in the medium. The background first does what blocks for long.
    superblock: Spin<Superblock>,
    len_bytes: AtomicU64,
    generation: AtomicU32,
    /// The flags in the durable superblock.
    features: AtomicU32,
}

impl Region {
    /// Determines the contents of a medium. Writes nothing.
    ///
    /// # Errors
    /// Any reason why the medium can be neither opened nor formatted, for example [`HeapError::Foreign`] or
    /// [`HeapError::Damaged`].
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

    /// Returns the region's engine. Writes nothing.
    ///
    /// # Errors
    /// Any reason why the region cannot be opened; [`HeapError::Unformatted`].
    pub fn engine<M: Medium>(medium: &M) -> Result<EngineNumber, HeapError> {
        match Region::probe(medium)? {
            Found::Fresh => Err(HeapError::Unformatted),
            Found::Formatted => Ok(Superblock::load(medium)?.superblock.engine),
        }
    }

    /// Returns the durability of the medium on which the region was made, if it is recorded; a journaled region does
    /// not record it. The caller that opens the region compares it with the requested durability.
    pub fn made_for<M: Medium>(medium: &M) -> Option<Durability> {
        if medium.len_bytes() < UNIT_BYTES { None } else { state::load_made_for(medium) }
    }

    /// Creates a region with this superblock, which need not be stored yet.
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

    /// Returns the superblock.
    pub fn superblock(&self) -> Superblock {
        *self.superblock.lock()
    }

    /// Returns the length in the durable superblock.
    pub(crate) fn len_bytes(&self) -> u64 {
        self.len_bytes.load(Ordering::Acquire)
    }

    /// Returns the store's generation: segments of any other generation are void.
    pub fn generation(&self) -> u16 {
        self.generation.load(Ordering::Acquire) as u16
    }

    /// Sets the generation: one word, so that a crash leaves the old or the new one. It is ordered before anything
    /// that follows; a caller that needs it durable commits.
    pub fn set_generation<M: Medium>(&self, medium: &M, generation: u16) {
        state::store_generation(medium, generation);
        medium.order();
        self.generation.store(u32::from(generation), Ordering::Release);
    }

    /// Stores both copies of the superblock, one durable before the other.
    pub(crate) fn store_superblock<M: Medium>(&self, medium: &M) {
        store_copies(medium, &self.superblock.lock());
    }

    /// Returns true if the region has these feature flags.
    #[inline]
    pub fn has_features(&self, features: u32) -> bool {
        self.features.load(Ordering::Acquire) & features == features
    }

    /// Sets these feature flags permanently. They are durable before anything that is written after this returns.
    #[inline]
    pub fn set_features<M: Medium>(&self, medium: &M, features: u32) {
        if !self.has_features(features) {
            self.add_features(medium, features);
        }
    }

    /// Sets flags that are not yet set: see the module's head.
    fn add_features<M: Medium>(&self, medium: &M, features: u32) {
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

    /// Returns the epoch that items are stamped with.
    ///
    /// # Errors
    /// [`HeapError::Damaged`] if the word does not fit its check.
    pub fn snapshot_epoch<M: Medium>(&self, medium: &M) -> Result<u32, HeapError> {
        state::load_snapshot_epoch(medium)
    }

    /// Sets the snapshot epoch: one word, ordered before anything that follows.
    pub fn set_snapshot_epoch<M: Medium>(&self, medium: &M, epoch: u32) {
        if medium.breaks(canary::EPOCH_NOT_FLUSHED) {
            return medium.store(SNAPSHOT_EPOCH, pmem::seal(u64::from(epoch)), Ordering::Release);
        }
        state::store_snapshot_epoch(medium, epoch);
        medium.order();
    }

    /// Grows the region by `step_bytes`, as far as the medium has space for it. The slow part is done without the lock,
    /// so that a writer that needs space in that time does not wait for it.
    pub(crate) fn grow_ahead<M: Medium>(&self, medium: &M, step_bytes: u64) -> Result<(), HeapError> {
        let present_bytes = self.len_bytes();
        medium.prepare_growth(stepped(present_bytes, step_bytes));
        self.grow(medium, present_bytes + UNIT_BYTES, step_bytes)
    }

    /// Grows the region to at least `wanted_bytes`: by `step_bytes` if the medium has space for it, otherwise by
    /// [`GROWTH_BYTES`], otherwise to `wanted_bytes` rounded up to units. After a step the length is a multiple of
    /// [`GROWTH_BYTES`], so that each growth consists of full huge pages.
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

/// Takes step 1 of growth and returns the new length.
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
    let ends = [step_bytes, GROWTH_BYTES].map(|step_bytes| stepped(present_bytes, step_bytes).max(least_bytes));
    for target_bytes in ends {
        if target_bytes > least_bytes && medium.grow(target_bytes).is_ok() {
            return Ok(target_bytes);
        }
    }
    medium.grow(least_bytes).map(|()| least_bytes)
}

/// Returns the length after a step of this length.
fn stepped(present_bytes: u64, step_bytes: u64) -> u64 {
    ((present_bytes + step_bytes) / GROWTH_BYTES * GROWTH_BYTES).min(REGION_BYTES_MAX)
}

/// Takes step 2 of growth.
fn store_copies<M: Medium>(medium: &M, superblock: &Superblock) {
    let [a, b] = SUPERBLOCK_COPIES;
    superblock.store(medium, a);
    medium.order_unless(canary::SUPERBLOCK_COPIES_TOGETHER);
    superblock.store(medium, b);
    medium.order();
}

/// Without its log, the base of a journal lacks the last changes.
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

/// Returns true if a format began and did not finish, or if nothing was ever written to the head.
fn is_fresh<M: Medium>(medium: &M) -> bool {
    let head_bytes = medium.len_bytes().min(UNIT_BYTES) & !7;
    let mut words = (0..head_bytes).step_by(8).map(|at| medium.load(pmem::Offset(at), Ordering::Relaxed));
    let unfinished = head_bytes > FORMAT_MARK.0 && medium.load(FORMAT_MARK, Ordering::Acquire) == FORMAT_UNFINISHED;
    unfinished || words.all(|word| word == 0)
}
