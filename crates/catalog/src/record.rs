//! The records of the catalog: their keys and bytes.
//!
//! | key | value |
//! |---|---|
//! | `FF 10 00` | the head: `hikvtree`, next id 4, least id 4, trees 4, dead ids 4 |
//! | `FF 10 01 name` | id 4, time of creation in ms 8; of a tree with types: length 2, their names |
//! | `FF 10 02 id` | the name of a living tree; nothing for a dead id |
//!
//! Numbers in keys are big-endian, so that they sort; numbers in values are little-endian. A longer value is that of a
//! later version, which adds fields at the end; a change of the record keeps them.

use engine::Error;

use crate::tree_id::{CATALOG, MARK, TreeId};

/// The key of the head.
pub const HEAD_KEY: [u8; 3] = [MARK, CATALOG, 0];
const NAME: u8 = 1;
const ID: u8 = 2;
const MAGIC: [u8; 8] = *b"hikvtree";
const HEAD_BYTES: usize = 24;
const TREE_BYTES: usize = 12;

/// Returns the key of a name's record.
pub(crate) fn name_key(name: &str) -> Vec<u8> {
    [&[MARK, CATALOG, NAME], name.as_bytes()].concat()
}

/// Returns the key of an id's record.
pub(crate) fn id_key(id: TreeId) -> Vec<u8> {
    [&[MARK, CATALOG, ID], &id.number().to_be_bytes()[..]].concat()
}

/// The head of the catalog.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Head {
    /// The id of the next tree.
    pub(crate) next: TreeId,
    /// No lesser id from [`TreeId::FIRST`] on has a record.
    pub(crate) least: TreeId,
    /// The number of names.
    pub(crate) tree_count: u32,
    /// The number of dead ids.
    pub(crate) dead_count: u32,
    pub(crate) later: Vec<u8>,
}

impl Head {
    pub(crate) const NEW: Head =
        Head { next: TreeId::FIRST, least: TreeId::FIRST, tree_count: 0, dead_count: 0, later: Vec::new() };

    /// Returns the head of these bytes, or `None` if they are anything else, such as a value that a program has put
    /// under the same key before the store had a catalog.
    pub(crate) fn of(value: &[u8]) -> Option<Head> {
        let (known, later) = value.split_at_checked(HEAD_BYTES)?;
        let (magic, numbers) = known.split_at(MAGIC.len());
        let number = |i: usize| u32_at(numbers, i * 4);
        let (next, least) = (TreeId::new(number(0)), TreeId::new(number(1)));
        (magic == MAGIC && TreeId::FIRST <= least && least <= next).then(|| Head {
            next,
            least,
            tree_count: number(2),
            dead_count: number(3),
            later: later.to_vec(),
        })
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let numbers = [self.next.number(), self.least.number(), self.tree_count, self.dead_count];
        [&MAGIC[..], numbers.map(u32::to_le_bytes).as_flattened(), &self.later].concat()
    }
}

/// Returns true if this is the head of a catalog.
#[must_use]
pub fn is_head(key: &[u8], value: &[u8]) -> bool {
    key == HEAD_KEY && Head::of(value).is_some()
}

/// The record of a name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct TreeRecord {
    pub(crate) id: TreeId,
    pub(crate) created_ms: u64,
    /// The names of the types of keys and values; empty of a tree without types.
    pub(crate) types: String,
    pub(crate) later: Vec<u8>,
}

impl TreeRecord {
    pub(crate) fn new(id: TreeId, created_ms: u64) -> TreeRecord {
        TreeRecord { id, created_ms, types: String::new(), later: Vec::new() }
    }

    pub(crate) fn of(value: &[u8]) -> Result<TreeRecord, Error> {
        let damaged = || Error::Corrupt { offset: 0, what: "the record of a tree's name in the catalog" };
        let (known, later) = value.split_at_checked(TREE_BYTES).ok_or(damaged())?;
        let created_ms = u64::from(u32_at(known, 4)) | u64::from(u32_at(known, 8)) << 32;
        let id = TreeId::new(u32_at(known, 0));
        let Some((len, rest)) = later.split_first_chunk() else {
            return Ok(TreeRecord { later: later.to_vec(), ..TreeRecord::new(id, created_ms) });
        };
        let (types, later) = rest.split_at_checked(u16::from_le_bytes(*len).into()).ok_or(damaged())?;
        let types = str::from_utf8(types).map_err(|_| damaged())?.to_owned();
        Ok(TreeRecord { id, created_ms, types, later: later.to_vec() })
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let (id, created, len) =
            (self.id.number().to_le_bytes(), self.created_ms.to_le_bytes(), (self.types.len() as u16).to_le_bytes());
        let has_types = !self.types.is_empty() || !self.later.is_empty();
        let len = if has_types { &len[..] } else { &[] };
        [&id[..], &created, len, self.types.as_bytes(), &self.later].concat()
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes[at..].first_chunk().map_or(0, |chunk| u32::from_le_bytes(*chunk))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_round_trip_with_later_fields() {
        let head = Head { next: TreeId::new(70_000), tree_count: 3, dead_count: 1, ..Head::NEW };
        assert_eq!(Head::of(&head.bytes()), Some(head.clone()));
        let longer = [&head.bytes()[..], b"later"].concat();
        assert_eq!(Head::of(&longer).map(|head| head.bytes()), Some(longer));
        let plain = TreeRecord::new(TreeId::new(300), 1 << 40);
        assert_eq!(plain.bytes().len(), TREE_BYTES);
        let typed = TreeRecord { types: "u64 → text".into(), ..plain.clone() };
        let (later, typed_later) = (b"later".to_vec(), [&typed.bytes()[..], b"later"].concat());
        let records = [plain.clone(), typed.clone(), TreeRecord { later: later.clone(), ..plain.clone() }];
        for record in records.into_iter().chain([TreeRecord { later, ..typed }]) {
            assert_eq!(TreeRecord::of(&record.bytes()).unwrap(), record);
        }
        assert_eq!(TreeRecord::of(&typed_later).unwrap().types, "u64 → text");
        assert!(TreeRecord::of(&[&plain.bytes()[..], &[9, 0, b'u']].concat()).is_err());
    }

    #[test]
    fn other_values_are_no_head() {
        let good = Head::NEW.bytes();
        assert!(Head::of(&good).is_some());
        let least_too_low = [&good[..12], &[1, 0, 0, 0], &good[16..]].concat();
        for value in [&b""[..], &[0; 18], &good[..23], &[&[0][..], &good[1..]].concat(), &least_too_low] {
            assert_eq!(Head::of(value), None, "{value:x?}");
        }
        assert!(TreeRecord::of(&[0; 11]).is_err());
    }
}
