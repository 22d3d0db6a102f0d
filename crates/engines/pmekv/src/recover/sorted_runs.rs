//! The records that have begun according to the logs: sorted runs, one of each thread that read records, and merged
//! ranges of all runs.

use std::cmp::Ordering;
use std::iter::Peekable;

use index::Position;
use pmem::arch;

/// A record and its key, whose first bytes decide most comparisons.
#[derive(Clone, Copy)]
pub(super) struct Keyed<'m> {
    head: u64,
    pub(super) key: &'m [u8],
    pub(super) record: Position,
}

impl<'m> Keyed<'m> {
    pub(super) fn new(key: &'m [u8], record: Position) -> Keyed<'m> {
        Keyed { head: head_of(key), key, record }
    }

    pub(super) fn by_key(&self, other: &Keyed<'_>) -> Ordering {
        self.head.cmp(&other.head).then_with(|| self.key.cmp(other.key))
    }
}

/// Runs, each in key order.
pub(super) struct SortedRuns<'m>(Vec<Vec<Keyed<'m>>>);

impl<'m> SortedRuns<'m> {
    pub(super) fn of(runs: Vec<Vec<Keyed<'m>>>) -> SortedRuns<'m> {
        SortedRuns(runs)
    }

    pub(super) fn count(&self) -> usize {
        self.0.iter().map(Vec::len).sum()
    }

    /// Returns the records of `low..high`, or from `low` to the end, in key order.
    pub(super) fn range(&self, low: &[u8], high: Option<&[u8]>) -> impl Iterator<Item = Keyed<'m>> {
        let mut runs: Vec<_> = self.0.iter().map(|run| in_time(part(run, low, high)).peekable()).collect();
        std::iter::from_fn(move || first_of(&mut runs))
    }
}

fn part<'r, 'm>(run: &'r [Keyed<'m>], low: &[u8], high: Option<&[u8]>) -> &'r [Keyed<'m>] {
    let past = high.map_or(run.len(), |high| run.partition_point(|keyed| keyed.key < high));
    let from = run.partition_point(|keyed| keyed.key < low).min(past);
    &run[from..past]
}

/// Returns the records and prefetches their keys, which were read long ago. It prefetches only a few at a time: many
/// records of the nodes come between two of them, and page translations from long before are lost again.
fn in_time<'r, 'm>(run: &'r [Keyed<'m>]) -> impl Iterator<Item = Keyed<'m>> + 'r {
    items::prefetch_ahead(run, |keyed| arch::prefetch(keyed.key.as_ptr())).copied()
}

/// Takes the first record that any run has left.
fn first_of<'m>(runs: &mut [Peekable<impl Iterator<Item = Keyed<'m>>>]) -> Option<Keyed<'m>> {
    let mut first: Option<(Keyed<'m>, usize)> = None;
    for (number, run) in runs.iter_mut().enumerate() {
        let next = run.peek().filter(|keyed| first.is_none_or(|(first, _)| keyed.by_key(&first).is_lt()));
        first = next.map(|&keyed| (keyed, number)).or(first);
    }
    first.and_then(|(_, number)| runs[number].next())
}

/// Returns the first eight bytes, which sort as keys do except for ties.
fn head_of(key: &[u8]) -> u64 {
    if let Some(head) = key.first_chunk() {
        return u64::from_be_bytes(*head);
    }
    let mut head = [0; 8];
    head[..key.len()].copy_from_slice(key);
    u64::from_be_bytes(head)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_merge_into_one_sorted_range() {
        let keys = ["", "a", "a\0", "abcdefgh", "abcdefgh\0", "abcdefghi", "abcdefgz", "b", "zz"];
        let record = Position::from_word(64);
        for split in 0..1 << keys.len() {
            let run = |which: u32| {
                let its = keys.iter().rev().enumerate().filter(|(number, _)| split >> number & 1 == which);
                let mut run: Vec<_> = its.map(|(_, key)| Keyed::new(key.as_bytes(), record)).collect();
                run.sort_unstable_by(Keyed::by_key);
                run
            };
            let begun = SortedRuns::of(vec![run(0), run(1)]);
            let found = |low: usize, high: Option<usize>| {
                let range = begun.range(keys[low].as_bytes(), high.map(|high| keys[high].as_bytes()));
                range.map(|keyed| std::str::from_utf8(keyed.key).unwrap()).collect::<Vec<_>>()
            };
            assert_eq!(found(0, None), keys);
            assert_eq!(found(2, Some(6)), keys[2..6]);
            assert_eq!(found(3, Some(3)), [""; 0]);
            assert_eq!(begun.count(), keys.len());
        }
    }
}
