//! A ring buffer of bytes with one writer and one reader.
//!
//! `tail` and `head` count all bytes so far: the writer's and the reader's position. The ring's words hold eight bytes
//! each.
//!
//! # Memory orders
//! - The writer stores bytes, some of them early, then `tail` (release); the reader loads `tail` (acquire), then bytes.
//!   The same holds for `head`, after which words are overwritten.
//! - Sleep: the reader stores `reader`, executes a full fence, loads `tail`; the writer stores `tail`, executes a full
//!   fence, loads `reader`. At least one of the two sees the other's store: no wake-up is lost. The same holds for a
//!   writer without space.
//! - A reader does not check `writer` after every store of `head`. A writer sleeps when the ring is full according to a
//!   `head` that is at least as new as the one after whose fence the reader last checked. Until the reader finds `tail`
//!   a full ring beyond that position, the writer is awake. Each `tail` is found, because a reader polls it before
//!   sleeping.
//! - Polling before that sleep loads only `tail`. A poll without data does not permit sleeping: only the check after
//!   the fence does.
//! - A reader that was woken by another event clears its word, without ordering: a writer that still finds the word
//!   wakes an awake reader, and a reader whose word the writer does not find checks `tail` again before it sleeps.
//! - A reader that was woken and finds nothing sets the word again before the next sleep. A late writer may have seen
//!   the word of one sleep, and cleared the word of the next: by then the reader has read those bytes, has no word set,
//!   and further bytes would not wake it.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};

use word::Word;

mod words;

pub(crate) use words::Words;

const WORD_BYTES: usize = 8;

/// Distance at which lines are prefetched where bytes are staged: some values, so that the writer can do other work in
/// between.
const STAGE_AHEAD_BYTES: u64 = 1024;

/// The other side's position is invalid.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Broken;

impl From<Broken> for std::io::Error {
    fn from(_: Broken) -> std::io::Error {
        std::io::Error::new(std::io::ErrorKind::InvalidData, "the other side stored an invalid ring position")
    }
}

/// The words of a ring, which both sides see.
#[derive(Debug)]
pub(crate) struct Ring<'m, W> {
    pub(crate) tail: &'m W,
    pub(crate) head: &'m W,
    /// 1 while the reader sleeps, or is about to.
    pub(crate) reader: &'m W,
    /// The same for a writer that waits for space.
    pub(crate) writer: &'m W,
    /// Their number is a power of two.
    pub(crate) words: &'m [W],
}

impl<W: Words> Ring<'_, W> {
    /// Returns the maximum number of unread bytes: one word less than the ring's length, because the writer's partly
    /// filled word is written as a whole and must not be the word that the reader is in.
    fn capacity_bytes(&self) -> u64 {
        ((self.words.len() - 1) * WORD_BYTES) as u64
    }

    fn word(&self, at: u64) -> &W {
        &self.words[(at as usize / WORD_BYTES) & (self.words.len() - 1)]
    }

    /// Returns the words from a position to the ring's end.
    fn words_from(&self, at: u64) -> &[W] {
        &self.words[(at as usize / WORD_BYTES) & (self.words.len() - 1)..]
    }
}

/// Clears `word` if its end sleeps, and returns whether that end must be woken. Called after the caller's position was
/// stored.
fn clear_sleeper<W: Word>(word: &W) -> bool {
    W::fence(SeqCst);
    word.load(Relaxed) == 1 && word.compare_exchange(1, 0, AcqRel, Relaxed).is_ok()
}

/// The writer's end. Staged bytes are written, but not yet published to the reader.
#[derive(Default, Debug)]
pub(crate) struct Sender {
    /// The position after all written bytes, of which those before `published` are published.
    tail: u64,
    published: u64,
    /// The reader's position when it was last loaded: it only increases, so space that existed then still exists. Its
    /// cache line belongs to the reader's processor, and is expensive to load.
    head: u64,
    /// The bytes of the partly filled word.
    begun: [u8; WORD_BYTES],
}

impl Sender {
    /// Returns the free space.
    fn free_bytes<W: Words>(&mut self, ring: &Ring<'_, W>) -> Result<u64, Broken> {
        let head = ring.head.load(Acquire);
        let free_bytes = ring.capacity_bytes().checked_sub(self.tail.wrapping_sub(head)).ok_or(Broken)?;
        self.head = head;
        Ok(free_bytes)
    }

    /// Writes as much as there is space for. Nothing must be staged.
    pub(crate) fn push<W: Words>(&mut self, ring: &Ring<'_, W>, bytes: &[u8]) -> Result<usize, Broken> {
        debug_assert_eq!(self.tail, self.published, "staged bytes are published first");
        let len = bytes.len().min(self.known_free_bytes(ring, bytes.len())? as usize);
        self.write(ring, &bytes[..len]);
        self.publish(ring, len);
        Ok(len)
    }

    /// Writes all of the bytes without publishing them, if there is space. Several staged pieces may be published
    /// together.
    pub(crate) fn stage<W: Words>(&mut self, ring: &Ring<'_, W>, bytes: &[u8]) -> Result<bool, Broken> {
        let has_space = self.known_free_bytes(ring, bytes.len())? >= bytes.len() as u64;
        if has_space {
            self.write(ring, bytes);
            self.expect(ring, STAGE_AHEAD_BYTES, bytes.len());
        }
        Ok(has_space)
    }

    /// Publishes `len_bytes` staged bytes to the reader.
    pub(crate) fn publish<W: Words>(&mut self, ring: &Ring<'_, W>, len_bytes: usize) {
        self.published = self.published.wrapping_add(len_bytes as u64);
        ring.tail.store(self.published, Release);
    }

    /// Returns the free space: the last known one if it is enough for `len`.
    fn known_free_bytes<W: Words>(&mut self, ring: &Ring<'_, W>, len: usize) -> Result<u64, Broken> {
        let known = ring.capacity_bytes() - self.tail.wrapping_sub(self.head);
        if known < len as u64 { self.free_bytes(ring) } else { Ok(known) }
    }

    /// Writes bytes for which there is space.
    fn write<W: Words>(&mut self, ring: &Ring<'_, W>, mut rest: &[u8]) {
        while !rest.is_empty() {
            let start = self.tail as usize % WORD_BYTES;
            if start == 0 {
                rest = self.push_words(ring, rest);
            }
            let (part, behind) = rest.split_at(rest.len().min(WORD_BYTES - start));
            if part.is_empty() {
                break;
            }
            self.begun[start..start + part.len()].copy_from_slice(part);
            ring.word(self.tail).store(u64::from_le_bytes(self.begun), Relaxed);
            self.tail = self.tail.wrapping_add(part.len() as u64);
            rest = behind;
        }
    }

    /// Writes the complete words of `bytes` up to the ring's end, and returns the remaining bytes.
    fn push_words<'b, W: Words>(&mut self, ring: &Ring<'_, W>, bytes: &'b [u8]) -> &'b [u8] {
        let words = ring.words_from(self.tail);
        let (whole, _) = bytes.as_chunks::<WORD_BYTES>();
        let len = words.len().min(whole.len()) * WORD_BYTES;
        W::store_all(words, whole);
        self.tail = self.tail.wrapping_add(len as u64);
        &bytes[len..]
    }

    /// Prefetches the lines for `len_bytes`, from `ahead_bytes` after the next byte, as far as the reader is known to
    /// have finished with them. They are in the reader's cache.
    pub(crate) fn expect<W: Words>(&self, ring: &Ring<'_, W>, ahead_bytes: u64, len_bytes: usize) {
        let known = (ring.capacity_bytes() - self.tail.wrapping_sub(self.head)).saturating_sub(ahead_bytes);
        let words = ring.words_from(self.tail.wrapping_add(ahead_bytes));
        let count = (len_bytes.min(known as usize) / WORD_BYTES).min(words.len());
        W::expect(&words[..count]);
    }

    /// Returns whether the reader has to be woken.
    pub(crate) fn wakes<W: Words>(&self, ring: &Ring<'_, W>) -> bool {
        clear_sleeper(ring.reader)
    }

    /// Sets the word that the writer is about to sleep; returns false if there is space.
    pub(crate) fn may_sleep<W: Words>(&mut self, ring: &Ring<'_, W>) -> Result<bool, Broken> {
        ring.writer.store(1, Relaxed);
        W::fence(SeqCst);
        let may = self.free_bytes(ring)? == 0;
        if !may {
            ring.writer.store(0, Relaxed);
        }
        Ok(may)
    }
}

/// The reader's end.
#[derive(Default, Debug)]
pub(crate) struct Receiver {
    head: u64,
    /// The writer's position when it was last loaded.
    tail: u64,
    /// The position after whose fence the writer's word was last checked.
    read_head: u64,
}

impl Receiver {
    /// Returns the number of readable bytes.
    fn available<W: Words>(&self, ring: &Ring<'_, W>) -> Result<u64, Broken> {
        let available = ring.tail.load(Acquire).wrapping_sub(self.head);
        if available > ring.capacity_bytes() { Err(Broken) } else { Ok(available) }
    }

    /// Copies the readable bytes that fit.
    pub(crate) fn pull<W: Words>(&mut self, ring: &Ring<'_, W>, out: &mut [u8]) -> Result<usize, Broken> {
        let available = self.available(ring)?;
        self.tail = self.head.wrapping_add(available);
        let len = out.len().min(available as usize);
        let mut rest = &mut out[..len];
        while !rest.is_empty() {
            let start = self.head as usize % WORD_BYTES;
            if start == 0 {
                rest = self.pull_words(ring, rest);
            }
            let (part, behind) = rest.split_at_mut(rest.len().min(WORD_BYTES - start));
            if part.is_empty() {
                break;
            }
            let bytes = ring.word(self.head).load(Relaxed).to_le_bytes();
            part.copy_from_slice(&bytes[start..start + part.len()]);
            self.head = self.head.wrapping_add(part.len() as u64);
            rest = behind;
        }
        ring.head.store(self.head, Release);
        Ok(len)
    }

    /// Copies complete words to `out` up to the ring's end, and returns the remaining part of `out`.
    fn pull_words<'b, W: Words>(&mut self, ring: &Ring<'_, W>, out: &'b mut [u8]) -> &'b mut [u8] {
        let words = ring.words_from(self.head);
        let len = words.len().min(out.len() / WORD_BYTES) * WORD_BYTES;
        let (whole, rest) = out.split_at_mut(len);
        let (whole, _) = whole.as_chunks_mut::<WORD_BYTES>();
        W::load_all(words, whole);
        self.head = self.head.wrapping_add(len as u64);
        rest
    }

    /// Returns whether there is data to read, or an invalid position to report.
    pub(crate) fn has_data<W: Words>(&self, ring: &Ring<'_, W>) -> bool {
        self.available(ring) != Ok(0)
    }

    /// Reverts [`Receiver::may_sleep`].
    pub(crate) fn stays_awake<W: Words>(&self, ring: &Ring<'_, W>) {
        ring.reader.store(0, Relaxed);
    }

    /// Returns whether the writer has to be woken.
    pub(crate) fn wakes<W: Words>(&mut self, ring: &Ring<'_, W>) -> bool {
        if self.tail.wrapping_sub(self.read_head) < ring.capacity_bytes() {
            return false;
        }
        self.read_head = self.head;
        clear_sleeper(ring.writer)
    }

    /// Sets the word that the reader is about to sleep; returns false if there is data to read.
    pub(crate) fn may_sleep<W: Words>(&self, ring: &Ring<'_, W>) -> Result<bool, Broken> {
        ring.reader.store(1, Relaxed);
        W::fence(SeqCst);
        let may = self.available(ring)? == 0;
        if !may {
            ring.reader.store(0, Relaxed);
        }
        Ok(may)
    }
}

#[cfg(all(test, not(miri)))]
mod model;

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::sync::atomic::AtomicU64;

    use super::*;

    /// A ring in this process' memory.
    pub(crate) struct Owned<W> {
        places: [W; 4],
        words: Vec<W>,
    }

    impl<W: Words> Owned<W> {
        pub(crate) fn new(word_count: usize) -> Owned<W> {
            Owned { places: std::array::from_fn(|_| W::new(0)), words: (0..word_count).map(|_| W::new(0)).collect() }
        }

        pub(crate) fn ring(&self) -> Ring<'_, W> {
            let [tail, head, reader, writer] = &self.places;
            Ring { tail, head, reader, writer, words: &self.words }
        }
    }

    #[test]
    fn published_bytes_arrive_unchanged() {
        let owned = Owned::<AtomicU64>::new(8);
        let ring = owned.ring();
        let (mut sender, mut receiver) = (Sender::default(), Receiver::default());
        // All bytes in the ring, of which the last `staged` are unpublished.
        let (mut model, mut staged, mut next) = (VecDeque::new(), 0, 0u8);
        let mut random = 1u64;
        for _ in 0..20_000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let len = (random >> 33) as usize % 30;
            let bytes: Vec<u8> = (0..len).map(|at| next.wrapping_add(at as u8)).collect();
            let free_bytes = 56 - model.len();
            let written = match random >> 62 {
                0 => {
                    sender.publish(&ring, std::mem::take(&mut staged));
                    let pushed = sender.push(&ring, &bytes).expect("nobody lies");
                    assert_eq!(pushed, len.min(free_bytes));
                    pushed
                }
                1 => {
                    let has_space = sender.stage(&ring, &bytes).expect("nobody lies");
                    assert_eq!(has_space, len <= free_bytes);
                    staged += if has_space { len } else { 0 };
                    if has_space { len } else { 0 }
                }
                2 => {
                    sender.publish(&ring, len.min(staged));
                    staged -= len.min(staged);
                    0
                }
                _ => {
                    let mut out = vec![0; len];
                    let pulled = receiver.pull(&ring, &mut out).expect("nobody lies");
                    assert_eq!(pulled, len.min(model.len() - staged));
                    assert!(out[..pulled].iter().all(|byte| Some(*byte) == model.pop_front()));
                    0
                }
            };
            model.extend(&bytes[..written]);
            next = next.wrapping_add(written as u8);
        }
    }

    #[test]
    fn places_beyond_the_ring_are_not_believed() {
        for wrong in [57, 64, 1 << 40, u64::MAX, u64::MAX - 7] {
            let owned = Owned::<AtomicU64>::new(8);
            let ring = owned.ring();
            ring.tail.store(wrong, Release);
            assert_eq!(Receiver::default().pull(&ring, &mut [0; 8]), Err(Broken), "{wrong:#x}");
            assert_eq!(Receiver::default().may_sleep(&ring), Err(Broken));
            ring.head.store(wrong.wrapping_neg(), Release);
            assert_eq!(Sender::default().push(&ring, &[0; 57]), Err(Broken), "{wrong:#x}");
            assert_eq!(Sender::default().may_sleep(&ring), Err(Broken));
        }
    }
}
