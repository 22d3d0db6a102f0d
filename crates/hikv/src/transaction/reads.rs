//! The reads of an attempt.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::ops::Bound;
use std::sync::LazyLock;

use engine::{Condition, Direction, Error, Version};

use crate::ordered::Bounds;

/// The key of the digests. It is drawn for each process and never leaves it, so that no client can choose items with
/// equal digests.
static SECRET: LazyLock<RandomState> = LazyLock::new(RandomState::new);

/// The keys and ranges that an attempt has read.
#[derive(Debug, Default)]
pub(super) struct Reads {
    /// The version of each key, `None` if it was absent.
    points: BTreeMap<Vec<u8>, Option<Version>>,
    ranges: Vec<RangeRead>,
}

impl Reads {
    /// Records the version of a key.
    ///
    /// # Errors
    /// [`Error::Conflict`] if the key had another version before.
    pub(super) fn note(&mut self, key: &[u8], version: Option<Version>) -> Result<(), Error> {
        match self.points.get(key) {
            Some(&noted) if noted != version => Err(Error::Conflict),
            Some(_) => Ok(()),
            None => {
                self.points.insert(key.to_vec(), version);
                Ok(())
            }
        }
    }

    /// Begins the read of a range, and returns its number.
    pub(super) fn begin_range(&mut self, bounds: Bounds) -> usize {
        self.ranges.push(RangeRead { bounds, front: Part::default(), back: Part::default(), is_whole: false });
        self.ranges.len() - 1
    }

    pub(super) fn range_mut(&mut self, number: usize) -> &mut RangeRead {
        &mut self.ranges[number]
    }

    pub(super) fn ranges(&self) -> &[RangeRead] {
        &self.ranges
    }

    pub(super) fn points(&self) -> &BTreeMap<Vec<u8>, Option<Version>> {
        &self.points
    }

    /// Returns the versions as conditions of a batch.
    pub(super) fn conditions(&self) -> Vec<Condition<'_>> {
        self.points.iter().map(|(key, &version)| Condition { key, version }).collect()
    }

    /// Returns the number of items of all ranges.
    pub(super) fn row_count(&self) -> u64 {
        self.ranges.iter().map(|range| range.front.row_count + range.back.row_count).sum()
    }
}

/// The part of a range that was read, from both ends.
#[derive(Debug)]
pub(super) struct RangeRead {
    bounds: Bounds,
    front: Part,
    back: Part,
    /// No unread item is left between the parts.
    is_whole: bool,
}

/// The items that were read from one end of a range.
#[derive(Debug, Default)]
pub(super) struct Part {
    digest: u64,
    row_count: u64,
    /// The last key that was handed out.
    last: Option<Vec<u8>>,
}

impl Part {
    /// Adds an item of the store.
    pub(super) fn add(&mut self, key: &[u8], value: &[u8]) {
        self.digest = SECRET.hash_one((self.digest, key, value));
        self.row_count += 1;
    }

    /// Records that the part reaches to this key.
    pub(super) fn reaches(&mut self, key: &[u8]) {
        let last = self.last.get_or_insert_default();
        last.clear();
        last.extend_from_slice(key);
    }

    /// Returns true if this has more items.
    pub(super) fn is_longer(&self, other: &Part) -> bool {
        self.row_count > other.row_count
    }

    /// Returns true if the items are the same.
    pub(super) fn is_same(&self, other: &Part) -> bool {
        (self.digest, self.row_count) == (other.digest, other.row_count)
    }
}

impl RangeRead {
    /// Returns the part of one end.
    pub(super) fn part_mut(&mut self, direction: Direction) -> &mut Part {
        match direction {
            Direction::Forward => &mut self.front,
            Direction::Backward => &mut self.back,
        }
    }

    /// Records that the range has no further item.
    pub(super) fn is_read(&mut self) {
        self.is_whole = true;
    }

    /// Returns the keys that were read, handed out or not: the range up to the last item of each end, or all of it.
    pub(super) fn parts(&self) -> impl Iterator<Item = (Bounds, Direction, &Part)> {
        let included = |key: &Vec<u8>| Bound::Included(key.clone());
        let high = match (&self.front.last, &self.back.last) {
            (_, Some(last)) if self.is_whole => Some(Bound::Excluded(last.clone())),
            _ if self.is_whole => Some(self.bounds.high().map(<[u8]>::to_vec)),
            (last, _) => last.as_ref().map(included),
        };
        let front = high.map(|high| {
            (Bounds::between(self.bounds.low().map(<[u8]>::to_vec), high), Direction::Forward, &self.front)
        });
        let low = self.back.last.as_ref().map(included);
        let back = low
            .map(|low| (Bounds::between(low, self.bounds.high().map(<[u8]>::to_vec)), Direction::Backward, &self.back));
        front.into_iter().chain(back)
    }
}
