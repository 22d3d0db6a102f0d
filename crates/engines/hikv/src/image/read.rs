//! Opening with an image.

use heap::{Heap, PlaceKind};
use index::{PartitionedHash, Position};
use pmem::{Dram, Medium, Offset, crc32c};

use super::layout::{HEADER_BYTES, Header};
use super::{CleanImage, Keys, Known};
use crate::canary;

impl CleanImage {
    /// Lets heap and index, just opened, adopt the contents of the region's image. If there is no image, or one that
    /// does not match, both stay unchanged. Stores nothing.
    pub(crate) fn adopt<M: Medium, D: Dram>(medium: &M, heap: &Heap<D>, index: &PartitionedHash) -> CleanImage {
        let Some(named) = heap.image().named() else { return CleanImage::default() };
        debug_assert_eq!(named.place.kind, PlaceKind::Extent);
        let capacity_bytes = heap.table().check_place(named.place).unwrap_or(0);
        let found = Found::read(medium, named, capacity_bytes);
        let adopted = found.filter(|found| found.fits(heap, index)).map(|found| {
            heap.sweep().adopt_free_words(found.free_words());
            index.adopt_count_words(found.count_words());
            found.known()
        });
        CleanImage::new(true, adopted.unwrap_or_default())
    }
}

/// An image whose header and space words are intact.
pub(crate) struct Found {
    header: Header,
    start: Offset,
    words: Vec<u64>,
}

impl Found {
    /// Reads the named image, if it fits into `capacity_bytes`.
    pub(crate) fn read<M: Medium>(medium: &M, named: heap::NamedImage, capacity_bytes: u64) -> Option<Found> {
        medium.held(|| Found::read_held(medium, named, capacity_bytes))
    }

    fn read_held<M: Medium>(medium: &M, named: heap::NamedImage, capacity_bytes: u64) -> Option<Found> {
        let start = named.place.offset;
        let header = Header::from_bytes(bytes(medium, start, HEADER_BYTES as u64)?.first_chunk()?)?;
        let is_this = header.number == named.number || medium.breaks(canary::STALE_IMAGE);
        if !is_this || header.image_bytes().is_none_or(|image_bytes| image_bytes > capacity_bytes) {
            return None;
        }
        let space = bytes(medium, start.plus(HEADER_BYTES as u64), header.space_bytes())?;
        let is_whole = crc32c(0, space) == header.space_checksum || medium.breaks(canary::TORN_IMAGE);
        is_whole.then(|| Found { header, start, words: words(space).collect() })
    }

    /// Returns true if this is the image of the region in its present state.
    fn fits<D: Dram>(&self, heap: &Heap<D>, index: &PartitionedHash) -> bool {
        let mark_bytes = heap::layout::unit_start(self.header.mark_units).0;
        (self.header.generation, mark_bytes) == (heap.region().generation(), heap.supply().mark_bytes())
            && heap.sweep().fits_free_words(self.free_words())
            && index.fits_count_words(self.count_words())
    }

    /// Returns the generation of the image's store.
    pub(crate) fn generation(&self) -> u16 {
        self.header.generation
    }

    /// Returns the words of free space.
    pub(crate) fn free_words(&self) -> &[u64] {
        &self.words[..self.header.free_word_count as usize]
    }

    fn count_words(&self) -> &[u64] {
        &self.words[self.header.free_word_count as usize..]
    }

    fn known(&self) -> Known {
        let start = self.start.plus(HEADER_BYTES as u64 + self.header.space_bytes());
        let keys = |count| Known::Order(Keys { start, count, checksum: self.header.order_checksum });
        self.header.key_count.map_or(Known::Space, keys)
    }
}

/// Returns the positions, if they are intact. The image is named, and stays named during the call.
pub(super) fn positions<M: Medium>(medium: &M, keys: Keys) -> Option<Vec<Position>> {
    medium.held(|| {
        let bytes = bytes(medium, keys.start, keys.count * 8)?;
        (crc32c(0, bytes) == keys.checksum).then(|| words(bytes).map(Position::from_word).collect())
    })
}

/// Returns bytes of the named image.
fn bytes<M: Medium>(medium: &M, start: Offset, len_bytes: u64) -> Option<&[u8]> {
    // SAFETY: the image's extent is stored to only after the image was invalidated, which the callers exclude: the
    // store is being opened, or they hold the lock that invalidation takes.
    unsafe { medium.bytes(start.span(len_bytes)) }.ok()
}

fn words(bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes.as_chunks::<8>().0.iter().map(|bytes| u64::from_le_bytes(*bytes))
}
