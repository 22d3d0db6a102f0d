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
mod finding;
mod orphans;
mod survey;
mod trusted_image;

use pmem::{Medium, MediumError};

use entries::Run;
use survey::Survey;

pub use finding::{Finding, SalvageError, Sink, Taken, Weight};

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
