//! The record of a collection: what its key holds (`docs/format/collections.md`).

use rdb::Kind;

/// The type of a collection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum CollectionType {
    Hash = 1,
    Set = 2,
    List = 3,
    SortedSet = 4,
}

impl CollectionType {
    const ALL: [CollectionType; 4] =
        [CollectionType::Hash, CollectionType::Set, CollectionType::List, CollectionType::SortedSet];

    /// Returns the type of a dumped value; `None` for a string.
    pub(crate) fn of_dumped(kind: Kind) -> Option<CollectionType> {
        match kind {
            Kind::String => None,
            Kind::Hash => Some(CollectionType::Hash),
            Kind::Set => Some(CollectionType::Set),
            Kind::List => Some(CollectionType::List),
            Kind::SortedSet => Some(CollectionType::SortedSet),
        }
    }

    /// Returns the type in dumps.
    pub(crate) fn dumped(self) -> Kind {
        match self {
            CollectionType::Hash => Kind::Hash,
            CollectionType::Set => Kind::Set,
            CollectionType::List => Kind::List,
            CollectionType::SortedSet => Kind::SortedSet,
        }
    }

    /// Returns the name in replies of `TYPE`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            CollectionType::Hash => "hash",
            CollectionType::Set => "set",
            CollectionType::List => "list",
            CollectionType::SortedSet => "zset",
        }
    }
}

/// The record of a living collection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Record {
    pub(crate) collection_type: CollectionType,
    /// The prefix of its elements.
    pub(crate) id: u64,
    /// The number of its elements.
    pub(crate) count: u64,
    /// A list's first position.
    pub(crate) first: u64,
    /// The position after a list's last one.
    pub(crate) end: u64,
}

/// Where a list begins.
const MIDDLE: u64 = 1 << 63;

impl Record {
    /// The type, the version and padding, the id, the count.
    const BYTES: usize = 24;
    /// The same, and the two ends.
    const LIST_BYTES: usize = 40;

    /// Creates the record of a collection that has no element yet.
    pub(super) fn new(collection_type: CollectionType, id: u64) -> Record {
        Record { collection_type, id, count: 0, first: MIDDLE, end: MIDDLE }
    }

    /// Parses a stored record; `None` if it is damaged or of a later version.
    pub(super) fn of(stored: &[u8]) -> Option<Record> {
        let number =
            |at: usize| stored.get(at..at + 8).map(|bytes| u64::from_le_bytes(bytes.try_into().expect("8 bytes")));
        let (types, rest) = (CollectionType::ALL, stored.get(1..8)?);
        let collection_type = types.into_iter().find(|known| *known as u8 == stored[0])?;
        let is_list = collection_type == CollectionType::List;
        let len_bytes = if is_list { Record::LIST_BYTES } else { Record::BYTES };
        if rest != [0; 7] || stored.len() != len_bytes {
            return None;
        }
        let (first, end) = if is_list { (number(24)?, number(32)?) } else { (MIDDLE, MIDDLE) };
        Some(Record { collection_type, id: number(8)?, count: number(16)?, first, end })
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(Record::LIST_BYTES);
        bytes.extend([self.collection_type as u8, 0, 0, 0, 0, 0, 0, 0]);
        [self.id, self.count].iter().for_each(|number| bytes.extend(number.to_le_bytes()));
        if self.collection_type == CollectionType::List {
            [self.first, self.end].iter().for_each(|number| bytes.extend(number.to_le_bytes()));
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_round_trip() {
        for collection_type in CollectionType::ALL {
            let mut record = Record { count: 3, ..Record::new(collection_type, 7) };
            if collection_type == CollectionType::List {
                record.end += 3;
            }
            let mut bytes = record.bytes();
            assert_eq!(Record::of(&bytes), Some(record));
            assert_eq!(Record::of(&bytes[1..]), None);
            assert_eq!(Record::of(&[&bytes[..], b"x"].concat()), None);
            // A later version.
            bytes[1] = 1;
            assert_eq!(Record::of(&bytes), None);
        }
        assert_eq!(Record::of(b""), None);
        assert_eq!(Record::of(&[5; Record::BYTES]), None);
    }
}
