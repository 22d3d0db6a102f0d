//! The ranges that an attempt has read.

use std::hash::{BuildHasher, RandomState};
use std::ops::Bound;
use std::sync::LazyLock;

use engine::Direction;

use crate::ordered::Bounds;

/// The key of the digests. It is drawn for each process and never leaves it, so that no client can choose items with
/// equal digests.
static SECRET: LazyLock<RandomState> = LazyLock::new(RandomState::new);

/// Bytes of items that are kept of each end, instead of their digest, which costs more.
const KEPT_BYTES_MAX: usize = 1 << 16;
const LENGTHS_BYTES: usize = 2 * size_of::<u64>();

/// The part of a range that was read, from both ends.
#[derive(Debug)]
pub(super) struct RangeRead {
    bounds: Bounds,
    front: Rows,
    back: Rows,
    /// No unread item is left between the two ends.
    is_whole: bool,
}

/// The items that were read from one end of a range.
#[derive(Debug, Default)]
pub(super) struct Rows {
    /// The first items: lengths of key and value, key, value.
    kept: Vec<u8>,
    /// The digest of the others.
    digest: u64,
    row_count: u64,
    /// The last key that was handed out.
    last: Option<Vec<u8>>,
}

impl Rows {
    /// Adds an item of the store.
    pub(super) fn add(&mut self, key: &[u8], value: &[u8]) {
        self.row_count += 1;
        let row_bytes = LENGTHS_BYTES + key.len() + value.len();
        // All items after the first one that is not kept are in the digest, so equal bytes are equal items.
        if self.digest != 0 || self.kept.len() + row_bytes > KEPT_BYTES_MAX {
            self.digest = SECRET.hash_one((self.digest, key, value)) | 1;
            return;
        }
        self.kept.reserve(row_bytes);
        for len in [key.len(), value.len()] {
            self.kept.extend_from_slice(&(len as u64).to_le_bytes());
        }
        self.kept.extend_from_slice(key);
        self.kept.extend_from_slice(value);
    }

    /// Records that the read reaches to this key.
    pub(super) fn reaches(&mut self, key: &[u8]) {
        let last = self.last.get_or_insert_default();
        last.clear();
        last.extend_from_slice(key);
    }

    pub(super) fn row_count(&self) -> u64 {
        self.row_count
    }

    /// Returns true if the items are the same.
    pub(super) fn is_same(&self, other: &Rows) -> bool {
        (self.digest, self.row_count) == (other.digest, other.row_count) && self.kept == other.kept
    }
}

/// A contiguous part of a range, all of which was read from one of its ends.
#[derive(Debug)]
pub(super) struct RangePart<'r> {
    pub(super) bounds: Bounds,
    pub(super) direction: Direction,
    pub(super) rows: &'r Rows,
}

impl RangeRead {
    /// Begins to read a range.
    pub(super) fn new(bounds: Bounds) -> RangeRead {
        RangeRead { bounds, front: Rows::default(), back: Rows::default(), is_whole: false }
    }

    /// Returns the rows of one end.
    pub(super) fn rows_mut(&mut self, direction: Direction) -> &mut Rows {
        match direction {
            Direction::Forward => &mut self.front,
            Direction::Backward => &mut self.back,
        }
    }

    /// Records that the range has no further item.
    pub(super) fn is_read(&mut self) {
        self.is_whole = true;
    }

    pub(super) fn row_count(&self) -> u64 {
        self.front.row_count + self.back.row_count
    }

    /// Returns true if a part was read.
    pub(super) fn is_begun(&self) -> bool {
        self.is_whole || self.front.last.is_some() || self.back.last.is_some()
    }

    /// Returns the parts that were read: up to the last item of each end, or the whole range.
    pub(super) fn parts(&self) -> impl Iterator<Item = RangePart<'_>> {
        let included = |key: &Vec<u8>| Bound::Included(key.clone());
        let owned = |bound: Bound<&[u8]>| bound.map(<[u8]>::to_vec);
        let high = match (&self.front.last, &self.back.last) {
            (_, Some(last)) if self.is_whole => Some(Bound::Excluded(last.clone())),
            _ if self.is_whole => Some(owned(self.bounds.high())),
            (last, _) => last.as_ref().map(included),
        };
        let low = self.back.last.as_ref().map(included);
        let front = high.map(|high| Bounds::between(owned(self.bounds.low()), high));
        let back = low.map(|low| Bounds::between(low, owned(self.bounds.high())));
        let front = front.map(|bounds| RangePart { bounds, direction: Direction::Forward, rows: &self.front });
        let back = back.map(|bounds| RangePart { bounds, direction: Direction::Backward, rows: &self.back });
        front.into_iter().chain(back)
    }
}
