//! Shows the pairs of a leaf. Keys and values may be anywhere, so both are prefetched some turns before they are
//! read, and so is the next leaf.

use core::ops::Range;

use pmem::{Dram, Medium};

use super::page::{Direction, Page};
use crate::Error;
use crate::key;
use crate::layout::PAIR_BYTES;
use crate::node::Node;
use crate::nodes::Reached;
use crate::read::Reader;
use crate::value::Value;
use crate::word;

/// Keys that are being prefetched while one is read: twice as many as values.
const KEYS_AHEAD: usize = 16;

/// Values that are being prefetched while one is read: about as many lines as a processor has in flight.
const VALUES_AHEAD: usize = 8;

/// Prefetched lines of each value. The processor prefetches the lines behind them; the slow part is the translation
/// of a page that was not used recently.
const SCANNED_LINES_AHEAD: u64 = 2;

/// The next leaf is prefetched when this many pairs of the present one are left.
const NEXT_LEAF_AHEAD: usize = 16;

/// The pairs of a leaf that a scan shows, in the order of the scan.
struct Turns<'a, M: Medium, const FORWARD: bool> {
    medium: &'a M,
    words: &'a [[u8; PAIR_BYTES as usize]],
}

impl<M: Medium, const FORWARD: bool> Turns<'_, M, FORWARD> {
    /// Returns pair `turn`: its number among these pairs, and its words.
    #[inline(always)]
    fn pair(&self, turn: usize) -> (usize, u64, u64) {
        let i = if FORWARD { turn } else { self.words.len() - 1 - turn };
        let words = u128::from_le_bytes(self.words[i]);
        (i, words as u64, (words >> 64) as u64)
    }

    #[inline(always)]
    fn ask_for_key(&self, turn: usize) {
        if turn < self.words.len() {
            word::prefetch_start(self.medium, self.pair(turn).1, 1);
        }
    }

    #[inline(always)]
    fn ask_for_value(&self, turn: usize) {
        if turn < self.words.len() {
            word::prefetch_start(self.medium, self.pair(turn).2, SCANNED_LINES_AHEAD);
        }
    }
}

/// The visit of a leaf.
pub(super) struct Visit<'v, 't, M: Medium, D: Dram, P> {
    pub(super) reader: &'t Reader<M, D>,
    pub(super) leaf: &'v Reached<'t, M>,
    /// The next leaf, until its lines were prefetched.
    pub(super) next: &'v mut Option<Node<'t, M>>,
    pub(super) page: &'v mut P,
}

impl<M: Medium, D: Dram, P: Page> Visit<'_, '_, M, D, P> {
    /// Shows up to `items_max` of these pairs and returns the range that is left. The start of the next page is then
    /// prefetched.
    pub(super) fn run(
        &mut self,
        direction: Direction,
        within: Range<usize>,
        items_max: usize,
    ) -> Result<Range<usize>, Error> {
        let words = self.leaf.node.words(within.clone())?;
        match direction {
            Direction::Forward => {
                let turn = self.visit_turns::<true>(within.start, words, items_max)?;
                Ok(within.start + turn..within.end)
            }
            Direction::Backward => {
                let turn = self.visit_turns::<false>(within.start, words, items_max)?;
                Ok(within.start..within.end - turn)
            }
        }
    }

    /// Shows the pairs in `words`, of which the first has number `start` in the leaf. Returns how many were passed.
    #[inline(always)]
    fn visit_turns<const FORWARD: bool>(
        &mut self,
        start: usize,
        words: &[[u8; PAIR_BYTES as usize]],
        items_max: usize,
    ) -> Result<usize, Error> {
        let Visit { reader, leaf, next, page } = self;
        let medium = reader.nodes().medium();
        let turns = Turns::<M, FORWARD> { medium, words };
        let mut missing = items_max;
        for turn in 0..words.len() {
            if missing == 0 {
                return Ok(turn);
            }
            if turn + NEXT_LEAF_AHEAD >= words.len()
                && let Some(next) = next.take()
            {
                next.prefetch();
            }
            turns.ask_for_key(turn + KEYS_AHEAD);
            turns.ask_for_value(turn + VALUES_AHEAD);
            let (i, key_word, value_word) = turns.pair(turn);
            if value_word == 0 {
                continue;
            }
            missing -= 1;
            // SAFETY: the leaf is locked: the chunks of its words are neither changed nor freed.
            let key = unsafe { key::in_slot(medium, key_word) };
            let pair = key.and_then(|(key, checksum)| {
                // SAFETY: as above.
                Some((key, unsafe { Value::in_slot(medium, value_word, reader.owner(checksum)) }?))
            });
            match pair {
                Some((key, value)) => page.item(key, &value),
                None => visit_any(reader, leaf, start + i, *page)?,
            }
        }
        Ok(words.len())
    }
}

/// Shows a pair that is not in two slots, expires, or is damaged.
#[cold]
#[inline(never)]
fn visit_any<M: Medium, D: Dram>(
    reader: &Reader<M, D>,
    leaf: &Reached<'_, M>,
    i: usize,
    page: &mut impl Page,
) -> Result<(), Error> {
    let key = leaf.node.key(i)?;
    if let Some(value) = reader.value_of(leaf, i, key::checksum(key))? {
        page.item(key, &value);
    }
    Ok(())
}

/// Prefetches the first keys and values of these pairs.
pub(super) fn ask_for_first<M: Medium>(direction: Direction, leaf: Node<'_, M>, within: &Range<usize>) {
    let count = within.len();
    let pair = |turn| match direction {
        Direction::Forward => within.start + turn,
        Direction::Backward => within.end - 1 - turn,
    };
    (0..count.min(KEYS_AHEAD)).for_each(|turn| leaf.prefetch_key(pair(turn)));
    let values = 0..count.min(VALUES_AHEAD);
    values.for_each(|turn| leaf.prefetch_value_start(pair(turn), SCANNED_LINES_AHEAD));
}
