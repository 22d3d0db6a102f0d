//! The stored keys of collections (`docs/format/collections.md`).

use std::ops::Bound;

use catalog::{Space, TreeId};
use hikv::{Expiry, Limits};

use crate::errors::Refusal;
use crate::keyspace::namespace::{Namespace, RawRange};

/// The name of the tree.
pub(super) const TREE: &str = "hikv:collections";

const HEAD: u8 = 0;
const RECORD: u8 = 1;
const ELEMENT: u8 = 2;
const DEAD: u8 = 3;
const DUE: u8 = 4;
const FLUSHED: u8 = 5;

/// The tree that holds all collections.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Layout(Space);

impl Layout {
    pub(super) fn of(tree: TreeId) -> Layout {
        Layout(Space::of(tree))
    }

    fn key(self, kind: u8, parts: &[&[u8]]) -> Vec<u8> {
        let mut raw = Vec::with_capacity(8 + parts.iter().map(|part| part.len()).sum::<usize>());
        self.0.with_stored(&[kind], |stored| raw.extend_from_slice(stored));
        parts.iter().for_each(|part| raw.extend_from_slice(part));
        raw
    }

    /// Returns the key of the next id.
    pub(super) fn head(self) -> Vec<u8> {
        self.key(HEAD, &[])
    }

    /// Returns the key of the record of a client's key.
    pub(super) fn record(self, namespace: Namespace, key: &[u8]) -> Vec<u8> {
        self.key(RECORD, &[&namespace.id().number().to_be_bytes(), key])
    }

    /// Returns the client's key of a record in this namespace.
    #[inline]
    pub(super) fn key_of_record(self, namespace: Namespace, raw: &[u8]) -> Option<&[u8]> {
        let rest = self.0.key_of(raw)?.strip_prefix(&[RECORD])?;
        rest.strip_prefix(&namespace.id().number().to_be_bytes())
    }

    /// Returns the range of the records of a namespace.
    pub(super) fn records(self, namespace: TreeId) -> RawRange {
        within(self.key(RECORD, &[&namespace.number().to_be_bytes()]))
    }

    /// Returns the namespace of a record.
    pub(super) fn namespace_of_record(self, raw: &[u8]) -> Option<TreeId> {
        let (id, _) = self.0.key_of(raw)?.strip_prefix(&[RECORD])?.split_first_chunk::<4>()?;
        Some(TreeId::new(u32::from_be_bytes(*id)))
    }

    /// Returns the range of the records of a namespace and of all with greater ids.
    pub(super) fn records_from(self, namespace: u32) -> RawRange {
        let (start, end) = within(self.key(RECORD, &[]));
        (start.map(|_| self.key(RECORD, &[&namespace.to_be_bytes()])), end)
    }

    /// Returns the key of an element.
    pub(super) fn element(self, id: u64, element: &[u8]) -> Vec<u8> {
        self.key(ELEMENT, &[&id.to_be_bytes(), element])
    }

    /// Returns the number of bytes before an element in its key.
    pub(super) fn element_offset(self) -> usize {
        self.element(0, &[]).len()
    }

    /// Returns the range of a collection's elements between these.
    pub(super) fn elements(self, id: u64, (low, high): (Bound<&[u8]>, Bound<&[u8]>)) -> RawRange {
        let (start, end) = within(self.element(id, &[]));
        let raw = |bound: Bound<&[u8]>| bound.map(|element| self.element(id, element));
        let or = |bound: Bound<Vec<u8>>, other| if bound == Bound::Unbounded { other } else { bound };
        (or(raw(low), start), or(raw(high), end))
    }

    /// Refuses an element that is too long for a key.
    pub(crate) fn check_element(self, element: &[u8]) -> Result<(), Refusal> {
        check(element.len(), Limits::KEY_BYTES_MAX - self.element_offset(), "the field or member")
    }

    /// Refuses a client's key that is too long for a record.
    pub(super) fn check_key(self, namespace: Namespace, key: &[u8]) -> Result<(), Refusal> {
        check(key.len(), Limits::KEY_BYTES_MAX - self.record(namespace, &[]).len(), "the key of the collection")
    }

    /// Returns the key of the row that marks the elements of a collection as dead.
    pub(super) fn dead(self, id: u64) -> Vec<u8> {
        self.key(DEAD, &[&id.to_be_bytes()])
    }

    /// Returns the range of these rows.
    pub(super) fn all_dead(self) -> RawRange {
        within(self.key(DEAD, &[]))
    }

    /// Returns the id of such a row.
    pub(super) fn id_of_dead(self, raw: &[u8]) -> Option<u64> {
        let id = self.0.key_of(raw)?.strip_prefix(&[DEAD])?;
        Some(u64::from_be_bytes(id.try_into().ok()?))
    }

    /// Returns the key of the row of a collection that expires.
    pub(super) fn due(self, expiry: Expiry, id: u64) -> Vec<u8> {
        self.key(DUE, &[&expiry.ms().to_be_bytes(), &id.to_be_bytes()])
    }

    /// Returns the range of these rows up to a time, in milliseconds since the Unix epoch.
    pub(super) fn due_until(self, ms: u64) -> RawRange {
        let start = self.key(DUE, &[]);
        (Bound::Included(start), Bound::Excluded(self.key(DUE, &[&ms.saturating_add(1).to_be_bytes()])))
    }

    /// Returns the expiry and the id of such a row.
    pub(super) fn of_due(self, raw: &[u8]) -> Option<(u64, u64)> {
        let (ms, id) = self.0.key_of(raw)?.strip_prefix(&[DUE])?.split_first_chunk::<8>()?;
        Some((u64::from_be_bytes(*ms), u64::from_be_bytes(id.try_into().ok()?)))
    }

    /// Returns the key of the row of an emptied namespace, whose records are dead.
    pub(super) fn flushed(self, namespace: TreeId) -> Vec<u8> {
        self.key(FLUSHED, &[&namespace.number().to_be_bytes()])
    }

    /// Returns the range of these rows.
    pub(super) fn all_flushed(self) -> RawRange {
        within(self.key(FLUSHED, &[]))
    }

    /// Returns the namespace of such a row.
    pub(super) fn namespace_of_flushed(self, raw: &[u8]) -> Option<TreeId> {
        let id = self.0.key_of(raw)?.strip_prefix(&[FLUSHED])?;
        Some(TreeId::new(u32::from_be_bytes(id.try_into().ok()?)))
    }
}

fn check(len_bytes: usize, len_bytes_max: usize, what: &str) -> Result<(), Refusal> {
    if len_bytes <= len_bytes_max {
        return Ok(());
    }
    Err(Refusal::Message(format!("{what} has {len_bytes} bytes; the limit is {len_bytes_max}")))
}

/// Returns the range of the keys that begin with `start`, which does not consist of the highest byte alone.
fn within(start: Vec<u8>) -> RawRange {
    let mut end = start.clone();
    while end.last() == Some(&u8::MAX) {
        end.pop();
    }
    end.last_mut().into_iter().for_each(|last| *last += 1);
    (Bound::Included(start), Bound::Excluded(end))
}

/// The number of bytes before a field or member in its element.
const HASH_BYTES: usize = 4;

/// Returns the element of a field of a hash, or a member of a set: its 32-bit hash and the member itself. So members
/// have a random order, which `HSCAN` goes through by the hash, and from which random ones are taken.
pub(crate) fn hashed(member: &[u8]) -> Vec<u8> {
    [&hash_of(member).to_be_bytes(), member].concat()
}

/// Returns the hash: CRC-32 with the bits mixed, because that of similar members is similar.
pub(crate) fn hash_of(member: &[u8]) -> u32 {
    let mut hash = crc32fast::hash(member);
    hash = (hash ^ hash >> 16).wrapping_mul(0x85EB_CA6B);
    hash = (hash ^ hash >> 13).wrapping_mul(0xC2B2_AE35);
    hash ^ hash >> 16
}

/// Returns the member of an element, and its hash.
pub(crate) fn member_of(element: &[u8]) -> (u32, &[u8]) {
    let (hash, member) = element.split_first_chunk::<HASH_BYTES>().unwrap_or((&[0; HASH_BYTES], &[]));
    (u32::from_be_bytes(*hash), member)
}
