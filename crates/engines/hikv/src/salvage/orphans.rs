//! Items whose entries a disk lost: intact items that no entry names, if the page of the index that would name them is
//! zeros, or is another page.
//!
//! The places of old values and of deleted items look the same, so an item is taken only on further evidence:
//! - There is no clean image that lists the places in use.
//! - The item's entry would be in a page of zeros, of a segment in use or of one whose header is lost: the page of the
//!   home line, or the first page, which has the stash, if the home line says that entries went there. A deleted key
//!   leaves a signature in the segment, and so no page of zeros.
//! - A segment that a split or a `clear` has made begins with zeros. There a page of zeros counts only if the segment's
//!   other pages have [`PAGE_TRACES_MIN`] signatures on average.
//!
//! The same holds for a page that a disk has written to another page's place: most of its entries belong elsewhere.
//! These entries are ignored here: their own page names the same items, or newer ones.
//!
//! Taken items are reported as doubtful: each may be an older value, or belong to a key that was deleted before a
//! split.

use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::Ordering;

use heap::layout::SEGMENT_BYTES;
use index::partitioned_hash::layout::Home;
use index::partitioned_hash::salvage::{entries, leads_to_stash};
use pmem::{Medium, Offset};

use super::entries::{PAGE_BYTES, Run, page_of};
use super::finding::{SalvageError, Weight};

const PAGE_COUNT: u64 = SEGMENT_BYTES / PAGE_BYTES;
/// With this many signatures per page on average, one page in fifty would have none by chance.
const PAGE_TRACES_MIN: u64 = 4;

impl<M: Medium> Run<'_, M> {
    /// Takes the intact items that lost pages of the index named.
    pub(super) fn take_orphans(&mut self) -> Result<(), SalvageError> {
        let survey = self.survey;
        let mut bare: HashSet<Offset> = survey.live.iter().flat_map(|&segment| self.bare_pages(segment)).collect();
        bare.extend(std::mem::take(&mut self.strays));
        // The pages of segments whose headers were in a page of zeros, among others.
        let unread: Vec<Offset> = survey.unreadable.iter().flat_map(|&segment| self.bare_pages(segment)).collect();
        if survey.hasher.is_none() || bare.is_empty() && unread.is_empty() {
            return Ok(());
        }
        let deleted = self.deleted_in_unreadable();
        let mut given = BTreeMap::<Offset, u64>::new();
        for at in survey.chunks.iter().flat_map(|chunk| chunk.item_places()) {
            if self.met.has(at) {
                continue;
            }
            let Ok(item) = self.whole_item(at) else { continue };
            let Some(signature) = self.signature(item.key).filter(|signature| !deleted.contains(signature)) else {
                continue;
            };
            let page = match survey.segment_of(signature) {
                Some(segment) => [page_in(signature, segment), segment]
                    .into_iter()
                    .find(|&page| bare.contains(&page) && self.may_name(page, signature)),
                None => unread.iter().copied().find(|&page| self.may_name(page, signature)),
            };
            if let Some(page) = page
                && self.take_orphan(at, item)?
            {
                *given.entry(page).or_default() += 1;
                self.gaps_gave |= survey.is_in_gap(signature);
            }
        }
        for (page, count) in given {
            let what = format!("a page of the index is lost: {count} of its items were found, others may be lost");
            self.report(Weight::Doubtful, page, None, what);
        }
        Ok(())
    }

    /// Returns true if an entry of `signature` may have been in `page`.
    fn may_name(&self, page: Offset, signature: u64) -> bool {
        let segment = segment_at(page);
        page_in(signature, segment) == page || page == segment && leads_to_stash(self.medium, signature, segment)
    }

    /// Returns the pages of a live segment that are at another page's place. The first page is left out, because its
    /// header shows that. A damaged signature is one of few in its page.
    pub(super) fn stray_pages(&self, segment: Offset) -> HashSet<Offset> {
        let mut counts = BTreeMap::<Offset, (u64, u64)>::new();
        for entry in entries(self.medium, segment).filter(|entry| entry.signature != 0) {
            let page = page_of(entry.slot.position);
            let (entry_count, foreign_count) = counts.entry(page).or_default();
            let is_its =
                self.survey.segment_of(entry.signature) == Some(segment) && page_in(entry.signature, segment) == page;
            *entry_count += 1;
            *foreign_count += u64::from(!is_its);
        }
        let is_stray = |(page, (entry_count, foreign_count))| {
            (page != segment && foreign_count > 1 && foreign_count * 2 > entry_count).then_some(page)
        };
        counts.into_iter().filter_map(is_stray).collect()
    }

    /// Returns the pages of a segment that are zeros now and were not always.
    fn bare_pages(&self, segment: Offset) -> Vec<Offset> {
        let is_bare = |page: &Offset| {
            (0..PAGE_BYTES).step_by(8).all(|at| self.medium.load(page.plus(at), Ordering::Relaxed) == 0)
        };
        let pages: Vec<Offset> = (0..PAGE_COUNT).map(|page| segment.plus(page * PAGE_BYTES)).filter(is_bare).collect();
        if pages.is_empty() || self.survey.is_first(segment) {
            return pages;
        }
        let trace_count = entries(self.medium, segment).filter(|entry| entry.signature != 0).count() as u64;
        let is_used = trace_count > 0 && trace_count >= PAGE_TRACES_MIN * (PAGE_COUNT - pages.len() as u64);
        if is_used { pages } else { Vec::new() }
    }

    /// Returns the signatures of deleted keys in segments whose headers are damaged.
    fn deleted_in_unreadable(&self) -> HashSet<u64> {
        let entries = self.survey.unreadable.iter().flat_map(|&segment| entries(self.medium, segment));
        entries.filter(|entry| !entry.position.is_live()).map(|entry| entry.signature).collect()
    }
}

/// Returns the page of a segment with the home line of a signature.
fn page_in(signature: u64, segment: Offset) -> Offset {
    page_of(Home::of(signature).offset(segment))
}

fn segment_at(page: Offset) -> Offset {
    Offset(page.0 - page.0 % SEGMENT_BYTES)
}
