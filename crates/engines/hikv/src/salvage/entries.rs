//! From entries to items: which items are taken, which are not, and why.

use std::collections::HashSet;

use heap::layout::UNIT_BYTES;
use index::partitioned_hash::Entry;
use index::partitioned_hash::salvage::{Interrupted, chain_from, entries};
use pmem::{Medium, Offset};

use super::finding::{Finding, SalvageError, Sink, Taken, Weight};
use super::survey::Survey;
use super::trusted_image::TrustedImage;
use crate::places::Places;
use items::Item;
use items::layout::{HEADER_BYTES, Header};

/// The wrong bits that a signature may have: a damaged byte. The position of another key passes with odds of one in
/// three billion.
const WRONG_BITS_MAX: u32 = 8;

/// The unit that a disk loses.
pub(super) const PAGE_BYTES: u64 = 4096;

/// One salvage.
pub(super) struct Run<'a, M> {
    pub(super) medium: &'a M,
    pub(super) survey: &'a Survey,
    batches: Interrupted,
    trusted_image: Option<TrustedImage>,
    sink: &'a mut dyn Sink,
    /// Items that were taken, or are known to be lost.
    pub(super) met: Places,
    /// Losses of entries, with their signatures. A loss is dropped if the item is found without its entry.
    losses: Vec<(u64, Finding)>,
    /// Entries whose signatures are damaged: a key that they hid may have been put again.
    astray: Vec<Entry>,
    /// Pages of the index that are at the place of other pages.
    pub(super) strays: HashSet<Offset>,
    /// Unreadable segments yielded items.
    pub(super) gaps_gave: bool,
}

impl<'a, M: Medium> Run<'a, M> {
    pub(super) fn new(medium: &'a M, survey: &'a Survey, sink: &'a mut dyn Sink) -> Run<'a, M> {
        let (batches, trusted_image) = (Interrupted::read(medium), TrustedImage::read(medium, survey));
        let met = Places::new(medium.len_bytes());
        let (losses, astray, strays) = (Vec::new(), Vec::new(), HashSet::new());
        Run { medium, survey, batches, trusted_image, sink, met, losses, astray, strays, gaps_gave: false }
    }

    pub(super) fn all(mut self) -> Result<(), SalvageError> {
        let survey = self.survey;
        if survey.hasher.is_none() {
            let what = "the hash seed is lost with both superblocks: items are taken by their checksums only";
            self.report(Weight::Doubtful, Offset(0), None, what.into());
        }
        let total = (survey.live.len() + survey.unreadable.len()) as u64;
        for (done, &segment) in (0..).zip(&survey.live) {
            self.live_segment(segment)?;
            self.progress(done, total)?;
        }
        for entry in std::mem::take(&mut self.astray) {
            self.entry_astray(&entry)?;
        }
        for (done, &segment) in (survey.live.len() as u64..).zip(&survey.unreadable) {
            entries(self.medium, segment)
                .try_for_each(|entry| self.decided(entry).map_or(Ok(()), |entry| self.entry_of_unreadable(&entry)))?;
            self.progress(done, total)?;
        }
        let found = self.take_unnamed()?;
        if self.trusted_image.is_none() {
            self.take_orphans()?;
        }
        self.report_gaps();
        for (signature, loss) in std::mem::take(&mut self.losses) {
            if !found.contains(&signature) {
                self.sink.found(loss);
            }
        }
        Ok(())
    }

    fn progress(&mut self, done: u64, total: u64) -> Result<(), SalvageError> {
        if self.sink.progress(done + 1, total).is_break() { Err(SalvageError::Stopped) } else { Ok(()) }
    }

    fn live_segment(&mut self, segment: Offset) -> Result<(), SalvageError> {
        let survey = self.survey;
        let (chain, damaged) = chain_from(self.medium, segment, &|at| survey.is_segment_place(self.medium, at));
        if let Some(at) = damaged {
            let what = "the word that names a chained segment is damaged; what may be chained is left out";
            let weight = if self.trusted_image.is_some() { Weight::Doubtful } else { Weight::Lost };
            self.report(weight, at, None, what.into());
        }
        let strays = self.stray_pages(segment);
        for &page in &strays {
            let what = "a page of the index is at another page's place: items that the other page named may be lost";
            self.report(Weight::Doubtful, page, None, what.into());
        }
        for segment in chain {
            entries(self.medium, segment)
                .filter(|entry| !strays.contains(&page_of(entry.slot.position)))
                .try_for_each(|entry| self.decided(entry).map_or(Ok(()), |entry| self.entry(&entry)))?;
        }
        self.strays.extend(strays);
        Ok(())
    }

    /// Returns the entry as its batch decides, if it is marked as one of a batch.
    fn decided(&mut self, entry: Entry) -> Option<Entry> {
        if !entry.position.is_in_batch() {
            return Some(entry);
        }
        let decided = self.batches.decided(&entry).unwrap_or_else(|| {
            let what = "an entry belongs to a batch that cannot be read: the batch may not have taken place";
            self.report(Weight::Doubtful, entry.slot.position, None, what.into());
            entry.position.out_of_batch()
        });
        decided.is_live().then_some(Entry { position: decided, ..entry })
    }

    /// Handles an entry of a segment in use.
    fn entry(&mut self, entry: &Entry) -> Result<(), SalvageError> {
        if !entry.position.is_live() {
            return Ok(());
        }
        let at = entry.position.offset();
        let item = match self.whole_item(at) {
            Ok(item) => item,
            Err(what) => {
                self.met.meet(at);
                self.lose(entry, self.key_at(at, entry.signature), what);
                return Ok(());
            }
        };
        let wrong_bits = self.signature(item.key).map_or(0, |signature| (signature ^ entry.signature).count_ones());
        if wrong_bits > WRONG_BITS_MAX {
            self.lose(entry, None, "an entry names another key's item".into());
            return Ok(());
        }
        if !self.allows(entry) {
            self.lose(entry, Some(item.key.to_vec()), "an entry names a place that is free in the clean image".into());
            return Ok(());
        }
        if wrong_bits > 0 {
            self.astray.push(*entry);
            return Ok(());
        }
        self.take(entry, item).map(drop)
    }

    /// Handles an entry of a segment in use that is correct except for its signature. All completely correct entries
    /// were handled before.
    fn entry_astray(&mut self, entry: &Entry) -> Result<(), SalvageError> {
        let Ok(item) = self.whole_item(entry.position.offset()) else { return Ok(()) };
        let key = Some(item.key.to_vec());
        self.report(Weight::Mended, entry.slot.signature, key, "an entry's signature did not match its key".into());
        self.take(entry, item).map(drop)
    }

    /// Handles an entry of a segment that may have been in use: the entry must be completely correct, and its key
    /// without a segment.
    fn entry_of_unreadable(&mut self, entry: &Entry) -> Result<(), SalvageError> {
        if !entry.position.is_live() || !self.survey.is_in_gap(entry.signature) {
            return Ok(());
        }
        let at = entry.position.offset();
        let Ok(item) = self.whole_item(at) else {
            let starts_item = self.survey.chunk_of(at).is_some_and(|chunk| chunk.slot_at(at).is_some());
            let key = self.key_at(at, entry.signature);
            if starts_item && key.is_some() {
                self.met.meet(at);
                self.lose(entry, key, "an item is damaged".into());
            }
            return Ok(());
        };
        if self.signature(item.key) == Some(entry.signature) && self.allows(entry) && self.take(entry, item)? {
            self.gaps_gave = true;
            let what = "the entry is in a segment with a damaged header: the value may be old, or the key deleted";
            let weight = if self.trusted_image.is_some() { Weight::Mended } else { Weight::Doubtful };
            self.report(weight, entry.slot.position, Some(item.key.to_vec()), what.into());
        }
        Ok(())
    }

    /// Passes the item to the sink; returns true if its key was new.
    fn take(&mut self, entry: &Entry, item: Item<'_>) -> Result<bool, SalvageError> {
        if !self.met.meet(entry.position.offset()) {
            return Ok(false);
        }
        let taken = self.sink.take(item.key, item.value, item.expiry).map_err(SalvageError::Sink)?;
        if taken == Taken::Other {
            let what = "a key has two entries: the value of the other entry was taken".into();
            self.report(Weight::Doubtful, entry.slot.position, Some(item.key.to_vec()), what);
        }
        Ok(taken == Taken::New)
    }

    /// Takes the items that the clean image has in use and no entry named; returns the signatures of the items found.
    fn take_unnamed(&mut self) -> Result<HashSet<u64>, SalvageError> {
        let (survey, Some(trusted_image)) = (self.survey, self.trusted_image.take()) else { return Ok(HashSet::new()) };
        let mut found = HashSet::new();
        for at in trusted_image.in_use(survey) {
            if !self.met.meet(at) {
                continue;
            }
            let Ok(item) = self.whole_item(at) else {
                let what = "an item that no entry names is damaged, and in use in the clean image";
                self.report(Weight::Lost, at, None, what.into());
                continue;
            };
            found.extend(self.signature(item.key));
            if self.sink.take(item.key, item.value, item.expiry).map_err(SalvageError::Sink)? == Taken::New {
                let what = "no intact entry names the item, but it is in use in the clean image";
                self.report(Weight::Mended, at, Some(item.key.to_vec()), what.into());
            }
        }
        self.trusted_image = Some(trusted_image);
        Ok(found)
    }

    /// Takes an intact item that no entry names; returns true if its key was new.
    pub(super) fn take_orphan(&mut self, at: Offset, item: Item<'_>) -> Result<bool, SalvageError> {
        self.met.meet(at);
        let what = match self.sink.take(item.key, item.value, item.expiry).map_err(SalvageError::Sink)? {
            Taken::New => "the entry is lost with a page of the index: the value may be old, or the key deleted",
            Taken::Same => return Ok(false),
            Taken::Other => "the entry is lost with a page of the index: another value of the key was taken",
        };
        self.report(Weight::Doubtful, at, Some(item.key.to_vec()), what.into());
        Ok(true)
    }

    fn report_gaps(&mut self) {
        let weight = match (self.trusted_image.is_some(), self.gaps_gave) {
            (true, _) => Weight::Mended,
            (false, true) => Weight::Doubtful,
            (false, false) => Weight::Lost,
        };
        let survey = self.survey;
        for gap in &survey.gaps {
            let (first, last) = (gap.start(), gap.end());
            let what = format!("no intact segment holds the keys of signatures {first:#018x} to {last:#018x}");
            self.report(weight, Offset(UNIT_BYTES), None, what);
        }
    }

    /// Returns the item at `at` if it is completely intact, or a description of the damage.
    pub(super) fn whole_item(&self, at: Offset) -> Result<Item<'a>, String> {
        let capacity_bytes = self.medium.len_bytes().saturating_sub(at.0);
        if at.0 < UNIT_BYTES || capacity_bytes < HEADER_BYTES as u64 {
            return Err(if capacity_bytes == 0 {
                "an item is beyond the end of the file"
            } else {
                "an entry names no item"
            }
            .into());
        }
        // SAFETY: no thread stores to the region: it is open for reading, and no process may have it open for writing.
        let item = unsafe { Item::read(self.medium, at, capacity_bytes) };
        let item = item.map_err(|_| "an item's header is damaged")?;
        if item.is_intact() { Ok(item) } else { Err("an item's checksum does not match".into()) }
    }

    /// Returns the key of the damaged item at `at`, if the key has this signature.
    fn key_at(&self, at: Offset, signature: u64) -> Option<Vec<u8>> {
        // SAFETY: as for `whole_item`.
        let bytes = |at: Offset, len_bytes| unsafe { self.medium.bytes(at.span(len_bytes)) }.ok();
        let header = Header::from_bytes(*bytes(at, HEADER_BYTES as u64)?.first_chunk()?);
        let key = bytes(at.plus(header.key_start() as u64), u64::from(header.key_bytes))?;
        (self.signature(key) == Some(signature)).then(|| key.to_vec())
    }

    pub(super) fn signature(&self, key: &[u8]) -> Option<u64> {
        self.survey.hasher.as_ref().map(|hasher| hasher.signature(key))
    }

    fn allows(&self, entry: &Entry) -> bool {
        self.trusted_image.as_ref().is_none_or(|trusted_image| trusted_image.allows(self.survey, entry.position))
    }

    fn lose(&mut self, entry: &Entry, key: Option<Vec<u8>>, what: String) {
        let what = match key {
            Some(_) => what,
            None => format!("{what}; the signature of its key is {:#018x}", entry.signature),
        };
        let offset = entry.slot.position.0;
        self.losses.push((entry.signature, Finding { weight: Weight::Lost, offset, key, what }));
    }

    pub(super) fn report(&mut self, weight: Weight, at: Offset, key: Option<Vec<u8>>, what: String) {
        self.sink.found(Finding { weight, offset: at.0, key, what });
    }
}

pub(super) fn page_of(at: Offset) -> Offset {
    Offset(at.0 - at.0 % PAGE_BYTES)
}
