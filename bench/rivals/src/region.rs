//! The common parts of the tables: the region's head, and the log of one update.
//!
//! ```text
//! +0     kind of table, 0 until it is made     +8  its slots
//! +64    the log's flag: 1 while the log is valid
//! +128   the log: number of words; then offset and word of each
//! +4096  the table
//! ```
//!
//! # A logged change
//! | step | a crash after it leaves |
//! |---|---|
//! | 1 the log is written; ordered | the old item |
//! | 2 the flag is 1; ordered | the new item, after opening has applied the log |
//! | 3 in place; ordered | the new item |
//! | 4 the flag is 0; waited for | the new item |

use std::sync::atomic::{AtomicU64, Ordering};

use arrayvec::ArrayVec;
use engine::Hasher;
use pmem::{Level, Medium, Offset, Span, lines};

use crate::{Error, Result, broken, canary};

/// The start of the table.
pub(crate) const TABLE: Offset = Offset(4096);

const KIND: Offset = Offset(0);
const SLOT_COUNT: Offset = Offset(8);
const FLAG: Offset = Offset(64);
const LOG: Offset = Offset(128);
/// The unit in which the table is cleared.
const BLOCK: [u8; 4096] = [0; 4096];
const HASH_SEED: u64 = 7;

/// Words that change together: of a slot and of its token, within two cache lines.
pub(crate) type Words = ArrayVec<(Offset, u64), 6>;

/// A region that holds a table: the medium, and facts found at opening.
pub struct Region<M> {
    pub(crate) medium: M,
    pub(crate) slot_count: u64,
    pub(crate) hasher: Hasher,
    item_count: AtomicU64,
}

impl<M: Medium> Region<M> {
    fn new(medium: M, slot_count: u64) -> Region<M> {
        Region { medium, slot_count, hasher: Hasher::new(HASH_SEED), item_count: AtomicU64::new(0) }
    }

    /// Creates an empty table, which is valid once its kind is stored.
    pub(crate) fn format(medium: M, kind: u64, slot_count: u64, table_bytes: u64) -> Result<Region<M>> {
        if slot_count == 0 {
            return Err(Error::Length);
        }
        let end = TABLE.plus(table_bytes.next_multiple_of(BLOCK.len() as u64));
        medium.grow(end.0)?;
        let region = Region::new(medium, slot_count);
        region.put(KIND, 0)?;
        for at in (0..end.0).step_by(BLOCK.len()) {
            // SAFETY: no other code refers to the region.
            unsafe { region.medium.stream(Offset(at), &[&BLOCK]) };
        }
        region.store(&[(SLOT_COUNT, slot_count)]);
        region.medium.order();
        region.put(KIND, kind)?;
        Ok(region)
    }

    /// Opens a table of this kind, and applies an update that was logged.
    pub(crate) fn open(medium: M, kind: u64) -> Result<Region<M>> {
        if medium.len_bytes() < TABLE.0 || medium.load(KIND, Ordering::Acquire) != kind {
            return Err(Error::Unformatted);
        }
        let slot_count = medium.load(SLOT_COUNT, Ordering::Acquire);
        let region = Region::new(medium, slot_count);
        // Data of a killed process may be visible and not durable: nothing is guaranteed for it, but data that is read
        // here counts.
        if region.word(FLAG) == 1 {
            region.store(&region.logged_words()?);
            region.medium.order();
            region.put(FLAG, 0)?;
        }
        Ok(region)
    }

    fn logged_words(&self) -> Result<Words> {
        let count = self.word(LOG);
        let pair = |i: u64| (Offset(self.word(LOG.plus(8 + 16 * i))), self.word(LOG.plus(16 + 16 * i)));
        let words: Words = (0..count).map(pair).take(6).collect();
        let lies_within = |(at, _): &(Offset, u64)| at.0 >= TABLE.0 && at.0 % 8 == 0 && at.0 < self.medium.len_bytes();
        let is_whole = words.len() as u64 == count && !words.is_empty();
        if is_whole && words.iter().all(lies_within) { Ok(words) } else { Err(Error::Damaged) }
    }

    #[inline(always)]
    pub(crate) fn word(&self, at: Offset) -> u64 {
        self.medium.load(at, Ordering::Acquire)
    }

    /// Prefetches the lines of a span.
    #[inline(always)]
    pub(crate) fn ask_for(&self, span: Span) {
        lines(span).for_each(|line| self.medium.prefetch_line(line));
    }

    /// Stores ascending words that are close together, and flushes them.
    pub(crate) fn store(&self, words: &[(Offset, u64)]) {
        words.iter().for_each(|&(at, word)| self.medium.store(at, word, Ordering::Release));
        let (first, last) = (words[0].0, words[words.len() - 1].0);
        self.medium.flush(first.span(last.0 - first.0 + 8));
    }

    /// Stores a word that ends an operation, and waits until everything is durable.
    pub(crate) fn put(&self, at: Offset, word: u64) -> Result<()> {
        self.store(&[(at, word)]);
        let ticket = self.medium.commit(Level::Strongest);
        Ok(self.medium.wait(ticket)?)
    }

    /// Writes an item's words, which are durable before the word of its token.
    pub(crate) fn write(&self, words: &[(Offset, u64)], (token, word): (Offset, u64)) -> Result<()> {
        if self.medium.breaks(canary::TOKEN_BEFORE_ITEM) {
            return broken::write_token_first(self, words, (token, word));
        }
        self.store(words);
        self.medium.order();
        self.put(token, word)
    }

    /// Changes words of a table atomically; see the module.
    pub(crate) fn change(&self, words: &[(Offset, u64)]) -> Result<()> {
        if self.medium.breaks(canary::UPDATE_NOT_LOGGED) {
            return broken::change_unlogged(self, words);
        }
        let pairs = words.iter().flat_map(|(at, word)| [at.0, *word]);
        let log = [words.len() as u64].into_iter().chain(pairs).zip((LOG.0..).step_by(8));
        let log: ArrayVec<(Offset, u64), 13> = log.map(|(word, at)| (Offset(at), word)).collect();
        self.store(&log);
        self.medium.order_unless(canary::LOG_NOT_ORDERED);
        self.store(&[(FLAG, 1)]);
        self.medium.order();
        self.store(words);
        self.medium.order();
        self.put(FLAG, 0)
    }

    pub(crate) fn count(&self, by: i64) {
        self.item_count.fetch_add(by as u64, Ordering::Relaxed);
    }

    pub(crate) fn item_count(&self) -> u64 {
        self.item_count.load(Ordering::Relaxed)
    }
}
