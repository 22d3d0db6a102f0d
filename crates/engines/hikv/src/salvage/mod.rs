//! Salvage copies the items of a region that is too damaged to be opened, or to be trusted
//! (`docs/decisions/0018-salvage-a-damaged-store-into-a-new-one.md`).
//!
//! # Rules
//! - The region is only read.
//! - An item counts only if an entry of the index names it; old values are everywhere. The item is taken if the
//!   checksum matches and the entry's signature is that of the key, with at most `WRONG_BITS_MAX` wrong bits: damage to
//!   a position leads to a key of a very different signature.
//! - If the region was closed in an orderly way, the clean image lists the places in use. The image overrules entries
//!   both ways: a place that is free in the image holds an old value; an item in use that no intact entry names is
//!   taken.
//! - Live segments come first, the deeper before the shallower (the halves are younger than a segment that was split).
//!   A segment whose header says dead, pending or another generation is void. Unreadable segments are searched only for
//!   the keys that no live segment covers.
//! - Segments are in chunks of segments, in chunks without a readable header, and in places without chunks. A segment
//!   in a chunk of items is only a copy in a user's value. If the header of that chunk is also damaged, the two cannot
//!   be distinguished.
//! - Entries with a damaged signature come after all others of live segments: their keys were absent, and may have been
//!   put again.
//! - If a key has two entries, the first one in this order wins, and the other is reported.
//! - A page of the index at another page's place is ignored: its own place holds the same entries, or newer ones.
//! - An intact item that no entry names is taken if the page of the index that would name the item is lost (`orphans`).
//! - Without a superblock the hash's seed is lost, and no key can be compared with its signature. Then items are taken
//!   by their checksums only, which is reported, and unreadable segments are left out.

mod entries;
mod orphans;
mod survey;
mod vouched;

use std::fmt;
use std::ops::ControlFlow;

use heap::HeapError;
use pmem::{Medium, MediumError};

use engine::{Error, Expiry, OpenError};
use entries::Run;
use survey::Survey;

/// The wrong bits that a signature may have: a damaged byte. The position of another key passes with odds of one in
/// three billion.
const WRONG_BITS_MAX: u32 = 8;

/// The effect of a finding on the items.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Weight {
    /// Something is damaged, without any loss.
    Mended,
    /// Something was taken, or chosen, on incomplete evidence.
    Doubtful,
    /// Something is lost.
    Lost,
}

/// A finding of a salvage.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// The effect on the items.
    pub weight: Weight,
    /// The offset into the region.
    pub offset: u64,
    /// The key concerned, if it can be read.
    pub key: Option<Vec<u8>>,
    /// The damage, and the action taken.
    pub what: String,
}

/// The result of taking a salvaged item.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Taken {
    /// The key was new.
    New,
    /// The key had been taken with the same value.
    Same,
    /// The key had been taken with another value, which stays.
    Other,
}

/// The receiver of the items.
pub trait Sink {
    /// Takes an item, unless its key was taken before.
    ///
    /// # Errors
    /// The error that prevents it from being stored, which ends the salvage.
    fn take(&mut self, key: &[u8], value: &[u8], expiry: Expiry) -> Result<Taken, Error>;

    /// Receives a finding.
    fn found(&mut self, finding: Finding);

    /// Receives the progress of reading the index from time to time; returns whether to continue.
    fn progress(&mut self, done: u64, total: u64) -> ControlFlow<()>;
}

/// The reason why a salvage ended early.
#[derive(Debug)]
pub enum SalvageError {
    /// Nothing can be salvaged, or the region belongs to another program.
    Unusable(OpenError),
    /// The sink failed.
    Sink(Error),
    /// The sink stopped the salvage.
    Stopped,
}

impl fmt::Display for SalvageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SalvageError::Unusable(error) => error.fmt(f),
            SalvageError::Sink(error) => error.fmt(f),
            SalvageError::Stopped => f.write_str("the salvage was stopped"),
        }
    }
}

impl std::error::Error for SalvageError {}

impl From<HeapError> for SalvageError {
    fn from(error: HeapError) -> SalvageError {
        SalvageError::Unusable(error.into())
    }
}

/// Passes every item that can be salvaged from the region to `sink`, each key once, and reports all damage. The clean
/// image is used only if `is_complete` states that none of the region's last changes is missing: the first of them
/// would have invalidated the image.
///
/// # Errors
/// See [`SalvageError`].
pub fn salvage<M: Medium>(medium: &M, is_complete: bool, sink: &mut dyn Sink) -> Result<(), SalvageError> {
    let mut findings = Vec::new();
    let mut on_damage = |at: pmem::Offset, what: &'static str| {
        findings.push(Finding { weight: Weight::Mended, offset: at.0, key: None, what: what.into() });
    };
    let mut survey = Survey::take(medium, &mut on_damage)?;
    survey.head.image = survey.head.image.filter(|_| is_complete);
    findings.into_iter().for_each(|finding| sink.found(finding));
    Run::new(medium, &survey, sink).all()?;
    if let Err(MediumError::Unreadable { offset, .. }) = medium.check_lost_ranges() {
        let what = "the region cannot be read here: its contents are not salvaged".into();
        sink.found(Finding { weight: Weight::Lost, offset, key: None, what });
    }
    Ok(())
}
