//! A copy of an item, in words.
//!
//! ```text
//! +0   signature
//! +8   length of the key 16, of the value 16; words that it may take 16; whether it expires 1
//! +16  version 16
//! +32  when it expires 8, if it does
//! ...  key, zero to a word; value, zero to a word
//! ```

use std::mem::MaybeUninit;
use std::sync::atomic::Ordering::Relaxed;

use word::Word;

use super::Sought;
use super::lines::{LINE_WORDS, Lines};
use super::signals::HANDED_WORDS_MAX;

/// The longest value that is copied, in bytes. Of longer ones the store's memory is read as fast as it can be.
pub const VALUE_BYTES_MAX: usize = 4096;
/// The longest key.
const KEY_BYTES_MAX: usize = 512;
const VALUE_WORDS_MAX: usize = VALUE_BYTES_MAX / 8;
const HEAD_WORDS: usize = 4;
/// The longest copy, in words.
pub(super) const WORDS_MAX: usize = round(HEAD_WORDS + 1 + KEY_BYTES_MAX / 8 + VALUE_WORDS_MAX);
/// A moment that never comes.
const NEVER: u64 = u64::MAX;

/// An item that is to be copied.
#[derive(Clone, Copy, Debug)]
pub struct NewCopy<'a> {
    /// Its value.
    pub value: &'a [u8],
    /// What its readers are told of its version.
    pub version: [u64; 2],
    /// When it expires, `u64::MAX` for never.
    pub expiry_ms: u64,
}

/// A copy that was found.
#[derive(Clone, Copy, Debug)]
pub struct Copied<'a> {
    /// Its value.
    pub value: &'a [u8],
    /// Its version.
    pub version: [u64; 2],
    /// When it expires, `u64::MAX` for never.
    pub expiry_ms: u64,
}

/// The second word.
#[derive(Clone, Copy)]
pub(super) struct Head(u64);

impl Head {
    fn new(key: &[u8], copy: &NewCopy<'_>, capacity_words: usize) -> Head {
        let expires = u64::from(copy.expiry_ms != NEVER);
        Head(key.len() as u64 | (copy.value.len() as u64) << 16 | (capacity_words as u64) << 32 | expires << 48)
    }

    fn key_bytes(self) -> usize {
        self.0 as u16 as usize
    }

    fn value_bytes(self) -> usize {
        (self.0 >> 16) as u16 as usize
    }

    /// The words that the copy may take; 0 where there is none.
    pub(super) fn capacity_words(self) -> usize {
        (self.0 >> 32) as u16 as usize
    }

    fn expires(self) -> bool {
        self.0 >> 48 != 0
    }

    /// Where its value begins, in words.
    #[inline(always)]
    fn value_start(self) -> usize {
        self.body_start() + self.key_bytes().div_ceil(8)
    }

    fn body_start(self) -> usize {
        HEAD_WORDS + usize::from(self.expires())
    }

    fn words(self) -> usize {
        round(self.body_start() + self.key_bytes().div_ceil(8) + self.value_bytes().div_ceil(8))
    }
}

/// Copies have an even number of words, so that what is left of a line has room for a head that says so.
const fn round(words: usize) -> usize {
    words.next_multiple_of(2)
}

impl NewCopy<'_> {
    /// How many words it takes; `None` if it is too long.
    pub(super) fn words(&self, key: &[u8]) -> Option<usize> {
        let fits = key.len() <= KEY_BYTES_MAX && self.value.len() <= VALUE_BYTES_MAX;
        fits.then(|| Head::new(key, self, 0).words())
    }

    /// Writes it. Nobody else writes there, and no reader believes what it finds there meanwhile.
    pub(super) fn write<W: Word>(&self, copies: &Lines<W>, place: usize, key: Sought<'_>, capacity_words: usize) {
        let head = Head::new(key.bytes, self, capacity_words);
        let store = |i: usize, word: u64| copies.word(place + i).store(word, Relaxed);
        store(0, key.signature);
        store(1, head.0);
        store(2, self.version[0]);
        store(3, self.version[1]);
        if head.expires() {
            store(HEAD_WORDS, self.expiry_ms);
        }
        let words = words_of(key.bytes).chain(words_of(self.value));
        words.enumerate().for_each(|(i, word)| store(head.body_start() + i, word));
    }
}

/// Bytes as words, zero to the last one's end.
#[inline(always)]
fn words_of(bytes: &[u8]) -> impl Iterator<Item = u64> + '_ {
    let (words, rest) = bytes.as_chunks::<8>();
    let last = (!rest.is_empty()).then(|| {
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        u64::from_le_bytes(last)
    });
    words.iter().map(|word| u64::from_le_bytes(*word)).chain(last)
}

/// The head of what lies at `place`.
#[inline(always)]
pub(super) fn head<W: Word>(copies: &Lines<W>, place: usize) -> Head {
    Head(copies.word(place + 1).load(Relaxed))
}

/// The signature of the copy at `place`.
pub(super) fn signature<W: Word>(copies: &Lines<W>, place: usize) -> u64 {
    copies.word(place).load(Relaxed)
}

/// Whether what lies at `place` is a copy of the key, and what its head says. It may be of two moments: a reader that relies
/// on it looks whether the bucket is still the same.
#[inline(always)]
pub(super) fn is_of<W: Word>(copies: &Lines<W>, place: usize, key: Sought<'_>) -> Option<Head> {
    let head = head(copies, place);
    let is_possible = copies.word(place).load(Relaxed) == key.signature
        && head.key_bytes() == key.bytes.len()
        && head.value_bytes() <= VALUE_BYTES_MAX
        && place + head.words() <= copies.word_count();
    let mut words = words_of(key.bytes).enumerate();
    (is_possible && words.all(|(i, word)| copies.word(place + head.body_start() + i).load(Relaxed) == word))
        .then_some(head)
}

/// A value's words, taken out of the copy.
pub(super) struct Taken {
    words: [MaybeUninit<u64>; VALUE_WORDS_MAX],
    value_bytes: usize,
    version: [u64; 2],
    expiry_ms: u64,
}

impl Taken {
    #[inline(always)]
    pub(super) fn new() -> Taken {
        Taken { words: [MaybeUninit::uninit(); VALUE_WORDS_MAX], value_bytes: 0, version: [0; 2], expiry_ms: NEVER }
    }

    /// Takes the copy out that [`is_of`] found.
    #[inline(always)]
    pub(super) fn take<W: Word>(&mut self, copies: &Lines<W>, place: usize, head: Head) {
        let load = |i: usize| copies.word(place + i).load(Relaxed);
        self.version = [load(2), load(3)];
        self.expiry_ms = if head.expires() { load(HEAD_WORDS) } else { NEVER };
        let start = head.value_start();
        self.value_bytes = head.value_bytes();
        for (i, word) in self.words[..self.value_bytes.div_ceil(8)].iter_mut().enumerate() {
            word.write(load(start + i).to_le());
        }
    }

    /// What was taken out.
    #[inline(always)]
    pub(super) fn copied(&self) -> Copied<'_> {
        // SAFETY: `take` wrote the words that have these bytes, each in the order of its bytes.
        let value = unsafe { std::slice::from_raw_parts(self.words.as_ptr().cast(), self.value_bytes) };
        Copied { value, version: self.version, expiry_ms: self.expiry_ms }
    }
}

/// A whole copy, taken out of words that nobody writes to.
pub(super) struct Own {
    bytes: [u8; HANDED_WORDS_MAX * 8],
    head: Head,
}

impl Own {
    pub(super) fn take<W: Word>(copies: &Lines<W>, place: usize) -> Own {
        let mut own = Own { bytes: [0; HANDED_WORDS_MAX * 8], head: head(copies, place) };
        let words = own.bytes.as_chunks_mut::<8>().0.iter_mut().take(own.head.words());
        words.enumerate().for_each(|(i, word)| *word = copies.word(place + i).load(Relaxed).to_le_bytes());
        own
    }

    fn word(&self, i: usize) -> u64 {
        u64::from_le_bytes(self.bytes.as_chunks::<8>().0[i])
    }

    /// Its key.
    pub(super) fn key(&self) -> Sought<'_> {
        Sought { bytes: &self.bytes[self.head.body_start() * 8..][..self.head.key_bytes()], signature: self.word(0) }
    }

    /// All else of it.
    pub(super) fn copy(&self) -> NewCopy<'_> {
        NewCopy {
            value: &self.bytes[self.head.value_start() * 8..][..self.head.value_bytes()],
            version: [self.word(2), self.word(3)],
            expiry_ms: if self.head.expires() { self.word(HEAD_WORDS) } else { NEVER },
        }
    }
}

const _: () = assert!(WORDS_MAX < 1 << 16 && KEY_BYTES_MAX < 1 << 16 && LINE_WORDS.is_multiple_of(2));
