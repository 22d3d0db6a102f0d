//! A ring of bytes with one writer and one reader.
//!
//! `tail` and `head` count bytes from the beginning of time: the writer's and the reader's place. The ring's words hold eight bytes each.
//!
//! # Orders
//! - The writer stores bytes, then `tail` (release); the reader loads `tail` (acquire), then bytes. The same for `head`, behind which
//!   words are written anew.
//! - Sleep: the reader stores `reader`, a full fence, loads `tail`; the writer stores `tail`, a full fence, loads `reader`. One of the two
//!   sees what the other has stored: no wake-up is lost. The same for a writer without room.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};

use word::Word;

const WORD_BYTES: usize = 8;

/// The other side contradicts itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Broken;

impl From<Broken> for std::io::Error {
    fn from(_: Broken) -> std::io::Error {
        std::io::Error::new(std::io::ErrorKind::InvalidData, "the ring's other side contradicts itself")
    }
}

/// The words of a ring, which both sides see.
#[derive(Debug)]
pub(crate) struct Ring<'m, W> {
    pub(crate) tail: &'m W,
    pub(crate) head: &'m W,
    /// 1 while the reader sleeps, or is about to.
    pub(crate) reader: &'m W,
    /// The same of the writer, for want of room.
    pub(crate) writer: &'m W,
    /// A power of two.
    pub(crate) words: &'m [W],
}

impl<W: Word> Ring<'_, W> {
    /// Bytes that may be unread: a word less than there is, since the word that the writer has begun is written as a whole and must
    /// not be the one that the reader is in.
    fn room_bytes(&self) -> u64 {
        ((self.words.len() - 1) * WORD_BYTES) as u64
    }

    fn word(&self, at: u64) -> &W {
        &self.words[(at as usize / WORD_BYTES) & (self.words.len() - 1)]
    }
}

/// Takes the end that sleeps by `word`: true if it has to be woken. Comes after the caller's place was stored.
fn takes_sleeper<W: Word>(word: &W) -> bool {
    W::fence(SeqCst);
    word.load(Relaxed) == 1 && word.compare_exchange(1, 0, AcqRel, Relaxed).is_ok()
}

/// The writer's end.
#[derive(Default, Debug)]
pub(crate) struct Sender {
    tail: u64,
    /// The bytes of the word that is not full, as they were written.
    begun: [u8; WORD_BYTES],
}

impl Sender {
    /// Bytes that have room.
    fn room<W: Word>(&self, ring: &Ring<'_, W>) -> Result<u64, Broken> {
        let used = self.tail.wrapping_sub(ring.head.load(Acquire));
        ring.room_bytes().checked_sub(used).ok_or(Broken)
    }

    /// Writes as much as there is room for.
    pub(crate) fn push<W: Word>(&mut self, ring: &Ring<'_, W>, bytes: &[u8]) -> Result<usize, Broken> {
        let len = bytes.len().min(self.room(ring)? as usize);
        let mut rest = &bytes[..len];
        while !rest.is_empty() {
            let start = self.tail as usize % WORD_BYTES;
            let (part, behind) = rest.split_at(rest.len().min(WORD_BYTES - start));
            self.begun[start..start + part.len()].copy_from_slice(part);
            ring.word(self.tail).store(u64::from_le_bytes(self.begun), Relaxed);
            self.tail = self.tail.wrapping_add(part.len() as u64);
            rest = behind;
        }
        ring.tail.store(self.tail, Release);
        Ok(len)
    }

    /// Whether the reader has to be woken.
    pub(crate) fn wakes<W: Word>(&self, ring: &Ring<'_, W>) -> bool {
        takes_sleeper(ring.reader)
    }

    /// Says that the writer is about to sleep for want of room; false if there is room.
    pub(crate) fn may_sleep<W: Word>(&self, ring: &Ring<'_, W>) -> Result<bool, Broken> {
        ring.writer.store(1, Relaxed);
        W::fence(SeqCst);
        let may = self.room(ring)? == 0;
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
}

impl Receiver {
    /// Bytes that can be read.
    fn available<W: Word>(&self, ring: &Ring<'_, W>) -> Result<u64, Broken> {
        let available = ring.tail.load(Acquire).wrapping_sub(self.head);
        if available > ring.room_bytes() { Err(Broken) } else { Ok(available) }
    }

    /// Copies as much as is there.
    pub(crate) fn pull<W: Word>(&mut self, ring: &Ring<'_, W>, out: &mut [u8]) -> Result<usize, Broken> {
        let len = out.len().min(self.available(ring)? as usize);
        let mut rest = &mut out[..len];
        while !rest.is_empty() {
            let start = self.head as usize % WORD_BYTES;
            let bytes = ring.word(self.head).load(Relaxed).to_le_bytes();
            let (part, behind) = rest.split_at_mut(rest.len().min(WORD_BYTES - start));
            part.copy_from_slice(&bytes[start..start + part.len()]);
            self.head = self.head.wrapping_add(part.len() as u64);
            rest = behind;
        }
        ring.head.store(self.head, Release);
        Ok(len)
    }

    /// Whether the writer has to be woken.
    pub(crate) fn wakes<W: Word>(&self, ring: &Ring<'_, W>) -> bool {
        takes_sleeper(ring.writer)
    }

    /// Says that the reader is about to sleep; false if there is something to read.
    pub(crate) fn may_sleep<W: Word>(&self, ring: &Ring<'_, W>) -> Result<bool, Broken> {
        ring.reader.store(1, Relaxed);
        W::fence(SeqCst);
        let may = self.available(ring)? == 0;
        if !may {
            ring.reader.store(0, Relaxed);
        }
        Ok(may)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::sync::atomic::AtomicU64;

    use super::*;

    /// A ring in memory of this process.
    struct Owned<W> {
        places: [W; 4],
        words: Vec<W>,
    }

    impl<W: Word> Owned<W> {
        fn new(word_count: usize) -> Owned<W> {
            Owned { places: std::array::from_fn(|_| W::new(0)), words: (0..word_count).map(|_| W::new(0)).collect() }
        }

        fn ring(&self) -> Ring<'_, W> {
            let [tail, head, reader, writer] = &self.places;
            Ring { tail, head, reader, writer, words: &self.words }
        }
    }

    #[test]
    fn bytes_come_out_as_they_went_in() {
        let owned = Owned::<AtomicU64>::new(8);
        let (mut sender, mut receiver) = (Sender::default(), Receiver::default());
        let (mut model, mut next, mut random) = (VecDeque::new(), 0u8, 1u64);
        for _ in 0..10_000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let len = (random >> 33) as usize % 30;
            if random >> 63 == 0 {
                let bytes: Vec<u8> = (0..len).map(|at| next.wrapping_add(at as u8)).collect();
                let pushed = sender.push(&owned.ring(), &bytes).expect("nobody lies");
                assert_eq!(pushed, len.min(56 - model.len()));
                model.extend(&bytes[..pushed]);
                next = next.wrapping_add(pushed as u8);
            } else {
                let mut out = vec![0; len];
                let pulled = receiver.pull(&owned.ring(), &mut out).expect("nobody lies");
                assert_eq!(pulled, len.min(model.len()));
                assert!(out[..pulled].iter().all(|byte| Some(*byte) == model.pop_front()));
            }
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
            assert_eq!(Sender::default().push(&ring, &[0; 8]), Err(Broken), "{wrong:#x}");
            assert_eq!(Sender::default().may_sleep(&ring), Err(Broken));
        }
    }

    /// Every interleaving of a writer and a reader, with what the memory model allows; and twins that lack an order.
    #[cfg(not(miri))]
    mod model {
        use std::sync::atomic::Ordering;

        use loom::sync::Arc;
        use loom::thread;
        use word_model::{Modelled, Weakened, Weakening, explore, is_caught};

        use super::*;

        /// Places are stored without release.
        struct PlacesRelaxed;

        impl Weakening for PlacesRelaxed {
            fn store(_: Ordering) -> Ordering {
                Relaxed
            }
        }

        /// There is no fence between an end's word and the other's.
        struct NoFence;

        impl Weakening for NoFence {
            fn has_fence(_: Ordering) -> bool {
                false
            }
        }

        /// In which each of the twins is caught.
        const PREEMPTION_COUNT: usize = 3;

        /// Five words through a ring of room for three, as far as a few turns of each end bring them.
        fn transfer<W: Word + Send + Sync + 'static>() {
            let owned = Arc::new(Owned::<W>::new(4));
            let shared = Arc::clone(&owned);
            let writer = thread::spawn(move || {
                let (ring, mut sender) = (shared.ring(), Sender::default());
                let bytes: [u8; 40] = std::array::from_fn(|at| at as u8 + 1);
                let mut at = 0;
                for _ in 0..2 {
                    at += sender.push(&ring, &bytes[at..]).unwrap();
                }
            });
            let (ring, mut receiver, mut at) = (owned.ring(), Receiver::default(), 0);
            for _ in 0..2 {
                let mut out = [0; 40];
                let pulled = receiver.pull(&ring, &mut out).unwrap();
                out[..pulled].iter().for_each(|byte| {
                    at += 1;
                    assert_eq!(*byte, at, "what was written");
                });
            }
            writer.join().unwrap();
        }

        /// A reader that sleeps because nothing is there is woken by the writer that comes.
        fn reader_sleeps<W: Word + Send + Sync + 'static>() {
            let owned = Arc::new(Owned::<W>::new(4));
            let shared = Arc::clone(&owned);
            let writer = thread::spawn(move || {
                let (ring, mut sender) = (shared.ring(), Sender::default());
                assert_eq!(sender.push(&ring, &[1; 8]), Ok(8));
                sender.wakes(&ring)
            });
            let sleeps = Receiver::default().may_sleep(&owned.ring()).unwrap();
            let is_woken = writer.join().unwrap();
            assert!(is_woken || !sleeps, "it sleeps for ever");
        }

        /// A writer that sleeps for want of room is woken by the reader that makes some.
        fn writer_sleeps<W: Word + Send + Sync + 'static>() {
            let owned = Arc::new(Owned::<W>::new(4));
            let mut sender = Sender::default();
            assert_eq!(sender.push(&owned.ring(), &[1; 30]), Ok(24));
            let shared = Arc::clone(&owned);
            let reader = thread::spawn(move || {
                let (ring, mut receiver) = (shared.ring(), Receiver::default());
                assert_eq!(receiver.pull(&ring, &mut [0; 8]), Ok(8));
                receiver.wakes(&ring)
            });
            let sleeps = sender.may_sleep(&owned.ring()).unwrap();
            let is_woken = reader.join().unwrap();
            assert!(is_woken || !sleeps, "it sleeps for ever");
        }

        #[test]
        fn no_byte_is_read_before_it_is_there_and_nobody_sleeps_for_ever() {
            explore(PREEMPTION_COUNT, transfer::<Modelled>);
            explore(PREEMPTION_COUNT, reader_sleeps::<Modelled>);
            explore(PREEMPTION_COUNT, writer_sleeps::<Modelled>);
        }

        #[test]
        fn twins_are_caught() {
            assert!(is_caught(PREEMPTION_COUNT, transfer::<Weakened<PlacesRelaxed>>), "places without release");
            assert!(is_caught(PREEMPTION_COUNT, reader_sleeps::<Weakened<NoFence>>), "a reader that nobody sees");
            assert!(is_caught(PREEMPTION_COUNT, writer_sleeps::<Weakened<NoFence>>), "a writer that nobody sees");
        }
    }
}
