//! The clean image as evidence of the places that were in use when the store was closed, with no change since.

use heap::layout::unit_of;
use heap::salvage::{Chunk, Contents, listed};
use heap::{NamedImage, PlaceKind};
use index::Position;
use pmem::{Medium, Offset};

use super::survey::Survey;
use crate::image::read::Found;

/// An intact image of this region.
pub(super) struct TrustedImage {
    image: Found,
    /// The image's own place.
    at: Offset,
    /// The first unit of each listed chunk, and the range of its words in the image's.
    chunks: Vec<(u32, std::ops::Range<usize>)>,
}

impl TrustedImage {
    /// Returns the image that the head names, if it is intact.
    pub(super) fn read<M: Medium>(medium: &M, survey: &Survey) -> Option<TrustedImage> {
        let named: NamedImage = survey.head.image?;
        let capacity_bytes = medium.len_bytes().checked_sub(named.place.offset.0)?;
        let image = Found::read(medium, named, capacity_bytes)?;
        if survey.head.generation.is_some_and(|generation| generation != image.generation()) {
            return None;
        }
        let mut past = 0;
        let chunks = listed(image.free_words()).map(|(unit, free)| {
            let start = past + 1;
            past = start + free.len();
            (unit, start..past)
        });
        let chunks = chunks.collect();
        Some(TrustedImage { image, at: named.place.offset, chunks })
    }

    /// Returns true if an item may be at the place that `position` names: the image has it in use, or has no
    /// information.
    pub(super) fn allows(&self, survey: &Survey, position: Position) -> bool {
        let at = position.offset();
        let past = unit_of(at).map_or(0, |unit| self.chunks.partition_point(|(first, _)| *first <= unit));
        let Some((unit, words)) = past.checked_sub(1).map(|last| &self.chunks[last]) else { return false };
        let Some(chunk) = self.chunk(survey, *unit, position) else { return true };
        chunk.slot_at(at).is_some_and(|slot| chunk.is_in_use(&self.image.free_words()[words.clone()], slot))
    }

    /// Returns every place in use in chunks whose headers are readable, except the image itself.
    pub(super) fn in_use<'a>(&'a self, survey: &'a Survey) -> impl Iterator<Item = Offset> + 'a {
        let known = |unit| survey.chunks.binary_search_by_key(&unit, |chunk| chunk.unit).ok().map(|i| survey.chunks[i]);
        let chunks = self.chunks.iter().filter_map(move |(unit, words)| Some((known(*unit)?, words.clone())));
        let places = chunks.flat_map(|(chunk, words)| {
            let free = &self.image.free_words()[words];
            let places = chunk.item_places().enumerate();
            places.filter(move |&(slot, _)| chunk.is_in_use(free, slot)).map(|(_, at)| at)
        });
        places.filter(|&at| at != self.at)
    }

    /// Returns the listed chunk at `unit`; if its header is damaged, the chunk that `position` implies.
    fn chunk(&self, survey: &Survey, unit: u32, position: Position) -> Option<Chunk> {
        let found = survey.chunks.binary_search_by_key(&unit, |chunk| chunk.unit).ok().map(|i| survey.chunks[i]);
        if let Some(chunk) = found.filter(|chunk| chunk.contents != Contents::Unknown) {
            return Some(chunk);
        }
        match position.place()?.kind {
            PlaceKind::Slot(class) => Some(Chunk::of_class(unit, class)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use engine::prelude::*;
    use heap::Parameters;
    use pmem_os::HostDram;
    use pmem_sim::{Model, Sim};

    use super::*;
    use crate::HiKv;

    #[test]
    fn image_of_other_generation_proves_nothing() {
        let parameters = Parameters { uuid: [7; 16], hash_seed: 7, partition_count: 1, region_bytes: 5 << 20 };
        let store = HiKv::format(Sim::new(5 << 20, Model::Line), HostDram, &parameters).unwrap();
        store.put(b"key", b"value").unwrap();
        store.close().unwrap();
        let medium = store.medium();
        let mut survey = Survey::take(medium, &mut |_, _| {}).unwrap();
        assert!(TrustedImage::read(medium, &survey).is_some());
        survey.head.generation = survey.head.generation.map(|generation| generation + 1);
        assert!(TrustedImage::read(medium, &survey).is_none());
        // A head without a generation accepts any image.
        survey.head.generation = None;
        assert!(TrustedImage::read(medium, &survey).is_some());
    }
}
