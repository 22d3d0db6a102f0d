//! Closing with an image, and invalidating an image.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use heap::Reservation;
use pmem::{Backoff, Checksum, Medium, Offset};

use super::layout::{HEADER_BYTES, Header};
use super::{Keys, Known};
use crate::order::Ordered;
use crate::{HiKv, Memory};
use engine::Error;

/// The length of the pieces in which words are written: a multiple of 16, within the L2 cache.
const PIECE_BYTES: usize = 64 * 1024;
/// The time for which a close waits for readers that keep retired items, before it writes no image: many times the
/// duration of a read, and less than a user who ends a program would notice.
const READER_WAIT_MAX: Duration = Duration::from_millis(20);

impl<M: Medium, D: Memory> HiKv<M, D> {
    /// Does steps 1 to 3, if they are useful and possible. No other thread uses the store.
    pub(crate) fn write_image(&self) -> Result<(), Error> {
        if !self.medium.is_writable() || !self.heap.region().has_features(heap::FEATURE_IMAGE) || !self.is_at_rest()? {
            return Ok(());
        }
        let key_count = self.order.key_count().filter(|&count| count == self.index.len());
        if self.is_as_good_as_named(key_count) {
            return Ok(());
        }
        self.forget_image();
        self.heap.empty_lanes(&self.medium);
        let header = self.header(key_count);
        match self.heap.reserve_extent(&self.medium, header.image_bytes().expect("the image is smaller than a region"))
        {
            // Reserving the extent may have raised the mark.
            Ok(reservation) => self.write_and_name(self.header(key_count), reservation),
            Err(error) if error.is_full() => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Does steps 4 and 5.
    #[cold]
    #[inline(never)]
    pub(crate) fn forget_image(&self) {
        let mut known = self.image.known.lock();
        if self.image.is_named() {
            self.heap.forget_image(&self.medium);
            *known = Known::Nothing;
            self.image.is_named.store(false, Ordering::Release);
        }
    }

    /// Returns true if all free space is known and nothing waits to be freed.
    fn is_at_rest(&self) -> Result<bool, Error> {
        if !self.heap.is_swept() || !Ordered::come_to_rest(self)? {
            return Ok(false);
        }
        let (start, mut backoff) = (Instant::now(), Backoff::long());
        while !(self.limbo.is_empty() && self.cleared.is_empty()) {
            if start.elapsed() > READER_WAIT_MAX {
                return Ok(false);
            }
            self.collect();
            backoff.relax();
        }
        Ok(true)
    }

    /// Returns true if a new image would hold no more than the named one.
    fn is_as_good_as_named(&self, key_count: Option<u64>) -> bool {
        match *self.image.known.lock() {
            Known::Nothing => false,
            Known::Space => key_count.is_none(),
            Known::Order(_) => true,
        }
    }

    /// Returns the header without checksums, with one more extent than now: the image's.
    fn header(&self, key_count: Option<u64>) -> Header {
        let mut free_word_count = 1;
        self.heap.sweep().free_words(&mut |_| free_word_count += 1);
        Header {
            generation: self.heap.region().generation(),
            number: self.heap.image().next_number(),
            mark_units: (self.heap.supply().mark_bytes() / heap::layout::UNIT_BYTES) as u32,
            segment_count: self.index.segment_count() as u32,
            free_word_count,
            key_count,
            space_checksum: 0,
            order_checksum: 0,
        }
    }

    fn write_and_name(&self, header: Header, reservation: Reservation<'_, D>) -> Result<(), Error> {
        let start = reservation.place().offset;
        let mut words = Words::new(&self.medium, start.plus(HEADER_BYTES as u64));
        let mut free_word_count = 0;
        self.heap.sweep().free_words(&mut |word| {
            free_word_count += 1;
            words.push(word);
        });
        self.index.count_words(&mut |word| words.push(word));
        let header = Header { free_word_count, space_checksum: words.checksum(), ..header };
        let keys_start = words.end();
        if let Some(count) = header.key_count
            && self.each_sorted(&mut |position| words.push(position.word()))? != count
        {
            return Ok(());
        }
        let header = Header { order_checksum: words.checksum(), ..header };
        words.finish();
        // SAFETY: the space was reserved for the image.
        unsafe { self.medium.stream(start, &[&header.to_bytes()]) };
        self.heap.image().name(&self.medium, reservation)?;
        let keys = |count| Known::Order(Keys { start: keys_start, count, checksum: header.order_checksum });
        *self.image.known.lock() = header.key_count.map_or(Known::Space, keys);
        self.image.is_named.store(true, Ordering::Release);
        Ok(())
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
