//! The copy of an item, in words.
//!
//! ```text
//! +0   signature
//! +8   length of the key 16, of the value 16; capacity in words 16; whether it expires 1
//! +16  version 16
//! +32  expiry 8, if it expires
//! ...  key, zero to a word; value, zero to a word
//! ```

use std::mem::MaybeUninit;
use std::sync::atomic::Ordering::Relaxed;

use word::Word;

use super::key::LookupKey;
use super::lines::{LINE_WORDS, Lines, Wide};

/// The longest value that is copied, in bytes. Reading a longer one from the store's memory is as fast.
pub const VALUE_BYTES_MAX: usize = 4096;
/// The longest key.
const KEY_BYTES_MAX: usize = 512;
pub(super) const VALUE_WORDS_MAX: usize = VALUE_BYTES_MAX / 8;
pub(super) const HEAD_WORDS: usize = 4;
/// The longest copy, in words.
pub(super) const WORDS_MAX: usize = round(HEAD_WORDS + 1 + KEY_BYTES_MAX / 8 + VALUE_WORDS_MAX);
/// The longest copy that is handed over to another thread, in words: seven lines.
pub(super) const HANDED_WORDS_MAX: usize = 7 * LINE_WORDS;
/// A time that never comes.
pub(super) const NEVER: u64 = u64::MAX;

/// An item that is to be copied.
#[derive(Clone, Copy, Debug)]
pub struct NewCopy<'a> {
    /// The value.
    pub value: &'a [u8],
    /// The version, for readers.
    pub version: [u64; 2],
    /// The time at which it expires, `u64::MAX` for never.
    pub expiry_ms: u64,
}

/// A copy that was found.
#[derive(Clone, Copy, Debug)]
pub struct Copied<'a> {
    /// The value.
    pub value: &'a [u8],
    /// The version.
    pub version: [u64; 2],
    /// The time at which it expires, `u64::MAX` for never.
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

    /// Returns true for a copy with a key of so many bytes and without an expiry.
    #[inline(always)]
    fn is_plain(self, key_bytes: usize) -> bool {
        self.0 & !(0xFFFF_FFFF << 16) == key_bytes as u64
    }

    #[inline(always)]
    fn key_bytes(self) -> usize {
        self.0 as u16 as usize
    }

    #[inline(always)]
    fn value_bytes(self) -> usize {
        (self.0 >> 16) as u16 as usize
    }

    /// Returns the number of words that the copy may occupy, 0 if there is no copy.
    pub(super) fn capacity_words(self) -> usize {
        (self.0 >> 32) as u16 as usize
    }

    #[inline(always)]
    fn expires(self) -> bool {
        self.0 >> 48 != 0
    }

    /// Returns the index of the word at which the value begins.
    #[inline(always)]
    fn value_start(self) -> usize {
        self.body_start() + self.key_bytes().div_ceil(8)
    }

    #[inline(always)]
    fn body_start(self) -> usize {
        HEAD_WORDS + usize::from(self.expires())
    }

    #[inline(always)]
    pub(super) fn words(self) -> usize {
        round(self.body_start() + self.key_bytes().div_ceil(8) + self.value_bytes().div_ceil(8))
    }
}

/// Copies have an even number of words, so that the remaining part of a line has space for a head that marks it
/// empty.
const fn round(words: usize) -> usize {
    words.next_multiple_of(2)
}

impl NewCopy<'_> {
    /// Returns the number of words that the copy needs, or `None` if it is too long.
    pub(super) fn words(&self, key: &[u8]) -> Option<usize> {
        let fits = key.len() <= KEY_BYTES_MAX && self.value.len() <= VALUE_BYTES_MAX;
        fits.then(|| Head::new(key, self, 0).words())
    }

    /// Writes the copy. No other thread writes there, and readers reject the words until the write is complete.
    pub(super) fn write<W: Word>(&self, copies: &Lines<W>, place: usize, key: LookupKey<'_>, capacity_words: usize) {
        let head = Head::new(key.bytes, self, capacity_words);
        let Some(words) = copies.behind(place).and_then(|words| words.get(..head.words())) else { return };
        let store = |i: usize, word: u64| words[i].store(word, Relaxed);
        store(0, key.signature);
        store(1, head.0);
        store(2, self.version[0]);
        store(3, self.version[1]);
        if head.expires() {
            store(HEAD_WORDS, self.expiry_ms);
        }
        let (key_words, value_words) = words[head.body_start()..].split_at(key.bytes.len().div_ceil(8));
        store_bytes(key_words, key.bytes);
        store_bytes(value_words, self.value);
    }
}

/// Stores bytes, with zeros up to the end of the last word.
#[inline(always)]
fn store_bytes<W: Word>(words: &[W], bytes: &[u8]) {
    let (whole, rest) = bytes.as_chunks::<8>();
    for (word, bytes) in words.iter().zip(whole) {
        word.store(u64::from_le_bytes(*bytes), Relaxed);
    }
    if !rest.is_empty() {
        words[whole.len()].store(last_word(bytes, rest), Relaxed);
    }
}

/// Returns the word for the bytes behind the last whole word, with zeros up to its end.
#[inline(always)]
fn last_word(bytes: &[u8], rest: &[u8]) -> u64 {
    match bytes.last_chunk::<8>() {
        // The last eight bytes end with them.
        Some(last) => u64::from_le_bytes(*last) >> ((8 * (8 - rest.len())) & 63),
        None => rest.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)),
    }
}

/// Returns bytes as words, with zeros up to the end of the last word.
#[inline(always)]
fn words_of(bytes: &[u8]) -> impl Iterator<Item = u64> + '_ {
    let (words, rest) = bytes.as_chunks::<8>();
    let last = (!rest.is_empty()).then(|| last_word(bytes, rest));
    words.iter().map(|word| u64::from_le_bytes(*word)).chain(last)
}

/// Returns the head of the copy at `place`.
#[inline(always)]
pub(super) fn head<W: Word>(copies: &Lines<W>, place: usize) -> Head {
    Head(copies.word(place + 1).load(Relaxed))
}

/// Returns the signature of the copy at `place`.
pub(super) fn signature<W: Word>(copies: &Lines<W>, place: usize) -> u64 {
    copies.word(place).load(Relaxed)
}

/// A copy that was read without a lock and may be inconsistent. A reader that uses it must check that the bucket is
/// unchanged.
pub(super) struct Met<'a, W> {
    head: Head,
    /// The words from the first on.
    words: &'a [W],
    /// The words of the value.
    value: &'a [W],
}

/// Returns the copy at `place`, if it is a copy of the key.
#[inline(always)]
pub(super) fn met<'a, W: Word>(copies: &'a Lines<W>, place: usize, key: LookupKey<'_>) -> Option<Met<'a, W>> {
    let words = copies.behind(place)?;
    let Some(wanted) = two_words(key.bytes) else { return met_any(words, key) };
    // The start of the value does not depend on the head, so all lines are loaded at the same time.
    let (start, rest) = words.split_first_chunk::<{ HEAD_WORDS + 2 }>()?;
    let [_, head, _, _, low, high] = start;
    let head = Head(head.load(Relaxed));
    if !head.is_plain(key.bytes.len()) {
        return met_any(words, key);
    }
    let value = rest.get(..head.value_bytes().div_ceil(8))?;
    let differs = (low.load(Relaxed) ^ wanted[0]) | (high.load(Relaxed) ^ wanted[1]);
    (differs == 0).then_some(Met { head, words, value })
}

/// Like [`met`], for a key of any length, and for copies that expire.
#[inline(never)]
fn met_any<'a, W: Word>(words: &'a [W], key: LookupKey<'_>) -> Option<Met<'a, W>> {
    let head = Head(words.get(1)?.load(Relaxed));
    let (key_start, value_start) = (head.body_start(), head.value_start());
    let mut pairs = words.get(key_start..value_start)?.iter().zip(words_of(key.bytes));
    let is_it = head.key_bytes() == key.bytes.len() && pairs.all(|(word, wanted)| word.load(Relaxed) == wanted);
    let value = words.get(value_start..)?.get(..head.value_bytes().div_ceil(8))?;
    is_it.then_some(Met { head, words, value })
}

/// Returns the words of a key that has two words, as most keys do.
#[inline(always)]
fn two_words(key: &[u8]) -> Option<[u64; 2]> {
    if !(9..=16).contains(&key.len()) {
        return None;
    }
    let (first, last) = (key.first_chunk()?, key.last_chunk()?);
    Some([u64::from_le_bytes(*first), u64::from_le_bytes(*last) >> ((8 * (16 - key.len())) & 63)])
}

impl<W: Wide> Met<'_, W> {
    /// Returns the time at which it expires, `u64::MAX` for never.
    #[inline(always)]
    pub(super) fn expiry_ms(&self) -> u64 {
        if self.head.expires() { self.words.get(HEAD_WORDS).map_or(NEVER, |word| word.load(Relaxed)) } else { NEVER }
    }

    /// Returns the version, for readers.
    #[inline(always)]
    pub(super) fn version(&self) -> [u64; 2] {
        [2, 3].map(|i| self.words.get(i).map_or(0, |word| word.load(Relaxed)))
    }

    /// Copies the value into `buffer`, and returns its length, or `None` if `buffer` is too short.
    #[inline(always)]
    pub(super) fn take(&self, buffer: &mut [MaybeUninit<u64>]) -> Option<usize> {
        let (pairs, last) = self.value.as_chunks::<2>();
        let (into, last_into) = buffer.get_mut(..self.value.len())?.as_chunks_mut::<2>();
        W::take_pairs(pairs, into);
        last.iter().zip(last_into).for_each(|(word, into)| _ = into.write(word.load(Relaxed)));
        Some(self.head.value_bytes())
    }
}

/// Returns the first bytes of words that hold a value.
///
/// # Safety
/// The words of so many bytes were written.
#[inline(always)]
pub(super) unsafe fn value_of(words: &[MaybeUninit<u64>], len_bytes: usize) -> &[u8] {
    // SAFETY: the caller's promise; this crate supports only processors that store the bytes of words in this
    // order.
    unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), len_bytes) }
}

/// A copy read completely from words that no thread writes.
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

    /// Returns the key.
    pub(super) fn key(&self) -> LookupKey<'_> {
        LookupKey { bytes: &self.bytes[self.head.body_start() * 8..][..self.head.key_bytes()], signature: self.word(0) }
    }

    /// Returns all other fields.
    pub(super) fn copy(&self) -> NewCopy<'_> {
        NewCopy {
            value: &self.bytes[self.head.value_start() * 8..][..self.head.value_bytes()],
            version: [self.word(2), self.word(3)],
            expiry_ms: if self.head.expires() { self.word(HEAD_WORDS) } else { NEVER },
        }
    }
}

const _: () = assert!(WORDS_MAX < 1 << 16 && KEY_BYTES_MAX < 1 << 16 && LINE_WORDS.is_multiple_of(2));
