//! Closing with an image, and invalidating an image.

use std::sync::atomic::Ordering;

use heap::{Heap, Reservation};
use index::{PartitionedHash, Position};
use pmem::{Checksum, Dram, Medium, Offset};

use super::layout::{HEADER_BYTES, Header};
use super::{CleanImage, Keys, Known};
use engine::Error;

/// The length of the pieces in which words are written: a multiple of 16, within the L2 cache.
const PIECE_BYTES: usize = 64 * 1024;

/// A store at rest, of which an image is written: all free space is known, and nothing waits to be freed.
pub(crate) struct Resting<'a, M, D: Dram> {
    pub(crate) medium: &'a M,
    pub(crate) heap: &'a Heap<D>,
    pub(crate) index: &'a PartitionedHash,
    /// The number of keys in order, if the order of all keys is known.
    pub(crate) key_count: Option<u64>,
}

/// Passes the items in key order to its parameter, and returns their number.
type EachSorted<'f> = dyn FnMut(&mut dyn FnMut(Position)) -> Result<u64, Error> + 'f;

impl CleanImage {
    /// Does steps 2 and 3, if they are useful and possible. No other thread uses the store.
    pub(crate) fn write<M: Medium, D: Dram>(
        &self,
        of: &Resting<'_, M, D>,
        each_sorted: &mut EachSorted<'_>,
    ) -> Result<(), Error> {
        if self.is_as_good_as(of.key_count) {
            return Ok(());
        }
        self.forget(of.medium, of.heap);
        of.heap.empty_lanes(of.medium);
        let header = of.header();
        match of.heap.reserve_extent(of.medium, header.image_bytes().expect("the image is smaller than a region")) {
            // Reserving the extent may have raised the mark.
            Ok(reservation) => self.write_and_name(of, reservation, each_sorted),
            Err(error) if error.is_full() => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Does steps 4 and 5.
    #[cold]
    #[inline(never)]
    pub(crate) fn forget<M: Medium, D: Dram>(&self, medium: &M, heap: &Heap<D>) {
        let mut known = self.known.lock();
        if self.is_named() {
            heap.forget_image(medium);
            *known = Known::Nothing;
            self.is_named.store(false, Ordering::Release);
        }
    }

    /// Returns true if a new image would hold no more than the named one.
    fn is_as_good_as(&self, key_count: Option<u64>) -> bool {
        match *self.known.lock() {
            Known::Nothing => false,
            Known::Space => key_count.is_none(),
            Known::Order(_) => true,
        }
    }

    fn write_and_name<M: Medium, D: Dram>(
        &self,
        of: &Resting<'_, M, D>,
        reservation: Reservation<'_, D>,
        each_sorted: &mut EachSorted<'_>,
    ) -> Result<(), Error> {
        let (header, start) = (of.header(), reservation.place().offset);
        let mut words = Words::new(of.medium, start.plus(HEADER_BYTES as u64));
        let mut free_word_count = 0;
        of.heap.sweep().free_words(&mut |word| {
            free_word_count += 1;
            words.push(word);
        });
        of.index.count_words(&mut |word| words.push(word));
        let header = Header { free_word_count, space_checksum: words.checksum(), ..header };
        let keys_start = words.end();
        if let Some(count) = header.key_count
            && each_sorted(&mut |position| words.push(position.word()))? != count
        {
            return Ok(());
        }
        let header = Header { order_checksum: words.checksum(), ..header };
        words.finish();
        // SAFETY: the space was reserved for the image.
        unsafe { of.medium.stream(start, &[&header.to_bytes()]) };
        of.heap.image().name(of.medium, reservation)?;
        let keys = |count| Known::Order(Keys { start: keys_start, count, checksum: header.order_checksum });
        *self.known.lock() = header.key_count.map_or(Known::Space, keys);
        self.is_named.store(true, Ordering::Release);
        Ok(())
    }
}

impl<M: Medium, D: Dram> Resting<'_, M, D> {
    /// Returns the header without checksums, with one more extent than now: the image's.
    fn header(&self) -> Header {
        let mut free_word_count = 1;
        self.heap.sweep().free_words(&mut |_| free_word_count += 1);
        Header {
            generation: self.heap.region().generation(),
            number: self.heap.image().next_number(),
            mark_units: (self.heap.supply().mark_bytes() / heap::layout::UNIT_BYTES) as u32,
            segment_count: self.index.segment_count() as u32,
            free_word_count,
            key_count: self.key_count,
            space_checksum: 0,
            order_checksum: 0,
        }
    }
}

/// Writes words one after the other, and computes their checksum.
struct Words<'a, M> {
    medium: &'a M,
    /// The offset of the piece.
    at: Offset,
    piece: Vec<u8>,
    /// Bytes of the piece that the checksum covers.
    summed_bytes: usize,
    checksum: Checksum,
}

impl<'a, M: Medium> Words<'a, M> {
    /// Returns a writer of words from `at` on, in space that was reserved for them.
    fn new(medium: &'a M, at: Offset) -> Words<'a, M> {
        Words { medium, at, piece: Vec::with_capacity(PIECE_BYTES), summed_bytes: 0, checksum: Checksum::default() }
    }

    fn push(&mut self, word: u64) {
        self.piece.extend_from_slice(&word.to_le_bytes());
        if self.piece.len() == PIECE_BYTES {
            self.stream();
        }
    }

    /// Returns the offset of the next word.
    fn end(&self) -> Offset {
        self.at.plus(self.piece.len() as u64)
    }

    /// Returns the checksum of the words since its last call.
    fn checksum(&mut self) -> u32 {
        self.sum_up();
        std::mem::take(&mut self.checksum).value()
    }

    fn sum_up(&mut self) {
        self.checksum = self.checksum.update(&self.piece[self.summed_bytes..]);
        self.summed_bytes = self.piece.len();
    }

    fn stream(&mut self) {
        self.sum_up();
        // SAFETY: the space was reserved for the image, rounded up to lines.
        unsafe { self.medium.stream(self.at, &[&self.piece]) };
        self.at = self.end();
        self.piece.clear();
        self.summed_bytes = 0;
    }

    fn finish(mut self) {
        self.stream();
    }
}

const _: () = assert!(PIECE_BYTES.is_multiple_of(16));
