//! Salvage: the items of a region that is too damaged to be opened, or to be trusted (`docs/decisions/0018-salvage-a-damaged-store-into-a-new-one.md`).
//!
//! # Rules
//! - The region is only read.
//! - An item is what an entry of the index names; old values lie everywhere. The item is taken if whole (the checksum
//!   fits) and the entry's signature is that of its key, but for `WRONG_BITS_MAX` bits: damage to a position leads to
//!   a key of quite another signature.
//! - Where the region was closed in an orderly way, its clean image says which places are in use. It overrules entries
//!   both ways: a place that it has as free holds an old value; an item in use that no whole entry names is taken.
//! - Live segments come first, the deeper before the shallower (its halves are younger than a segment that was split). A
//!   segment that says that it is dead, pending or of another generation is void. What cannot be read is asked for the
//!   keys that no live segment covers, and for no others.
//! - Segments lie in chunks of segments, where chunks have no header that can be read, and where there are no chunks. In a
//!   chunk of items, what looks like a segment is a value that holds a copy of one. Where the header of that chunk is
//!   damaged as well, nothing tells the one from the other.
//! - Entries whose signature is damaged come behind all others of live segments: their keys were absent, and may have been put
//!   again.
//! - Of two entries for one key the first one in this order wins; the other is told.
//! - A page of the index that lies at another page's place is ignored: its own place holds the same entries, or newer ones.
//! - A whole item that no entry names is taken where the page of the index that would name it is lost (`orphans`).
//! - Without a superblock the hash's seed is lost, and no key can be held against its signature: items are taken by their
//!   checksums alone, which is told; segments that cannot be read are left out.

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

/// Bits of a signature that may be wrong: a damaged byte. That a position of any other key passes has odds of one in
/// three thousand million.
const WRONG_BITS_MAX: u32 = 8;

/// What a finding means for the items.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Weight {
    /// Something is damaged, and costs nothing.
    Mended,
    /// Something was taken, or chosen, on less than full evidence.
    Doubtful,
    /// Something is lost.
    Lost,
}

/// Something that is not as it should be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// What it means.
    pub weight: Weight,
    /// Where, as an offset into the region.
    pub offset: u64,
    /// The key that is concerned, where it can be read.
    pub key: Option<Vec<u8>>,
    /// What is wrong, and what was done about it.
    pub what: String,
}

/// What became of an item that was salvaged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Taken {
    /// It was not there before.
    New,
    /// It was, with the same value.
    Same,
    /// Its key was there with another value, which stays.
    Other,
}

/// What takes the items.
pub trait Sink {
    /// Takes an item, unless its key was taken before.
    ///
    /// # Errors
    /// Whatever keeps it from being stored, which ends the salvage.
    fn take(&mut self, key: &[u8], value: &[u8], expiry: Expiry) -> Result<Taken, Error>;

    /// Is told what was found.
    fn found(&mut self, finding: Finding);

    /// Is told now and then how much of the index was read; says whether to go on.
    fn progress(&mut self, done: u64, total: u64) -> ControlFlow<()>;
}

/// Why a salvage ended early.
#[derive(Debug)]
pub enum SalvageError {
    /// Nothing can be salvaged, or the region is another program's.
    Unusable(OpenError),
    /// The sink failed.
    Sink(Error),
    /// The sink wanted no more.
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

/// Gives every item that can be salvaged from the region to `sink`, each key once, and tells it what is wrong. The clean image is
/// believed where `is_complete` says that nothing of the region's last changes is missing: the first of them would have said that the
/// image does not count any more.
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
        let what = "the region could not be read here: what it held is not salvaged".into();
        sink.found(Finding { weight: Weight::Lost, offset, key: None, what });
    }
    Ok(())
}
