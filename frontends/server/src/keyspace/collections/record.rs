//! The record of a collection: what its key holds (`docs/format/collections.md`).

use rdb::Kind;

use super::stream::StreamId;

/// The type of a collection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum CollectionType {
    Hash = 1,
    Set = 2,
    List = 3,
    SortedSet = 4,
    Stream = 5,
}

impl CollectionType {
    const ALL: [CollectionType; 5] = [
        CollectionType::Hash,
        CollectionType::Set,
        CollectionType::List,
        CollectionType::SortedSet,
        CollectionType::Stream,
    ];

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

    /// Returns the type in dumps; `None` for a stream, which is not dumped.
    pub(crate) fn dumped(self) -> Option<Kind> {
        match self {
            CollectionType::Hash => Some(Kind::Hash),
            CollectionType::Set => Some(Kind::Set),
            CollectionType::List => Some(Kind::List),
            CollectionType::SortedSet => Some(Kind::SortedSet),
            CollectionType::Stream => None,
        }
    }

    /// Returns the name in replies of `TYPE`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            CollectionType::Hash => "hash",
            CollectionType::Set => "set",
            CollectionType::List => "list",
            CollectionType::SortedSet => "zset",
            CollectionType::Stream => "stream",
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
    /// The ids and numbers of a stream.
    pub(crate) stream: StreamState,
}

/// The part of a stream that does not go with its entries.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct StreamState {
    /// The greatest id that an entry had.
    pub(crate) last: StreamId,
    /// The greatest id of an entry that `XDEL` has deleted.
    pub(crate) max_deleted: StreamId,
    /// The number of entries that were ever added.
    pub(crate) added_count: u64,
    /// The number of the next group or consumer.
    pub(crate) next_number: u64,
}

/// Where a list begins.
const MIDDLE: u64 = 1 << 63;

impl Record {
    /// The type, the version and padding, the id, the count.
    const BYTES: usize = 24;
    /// The same, and the two ends.
    const LIST_BYTES: usize = 40;
    /// The same as without ends, and the state of a stream.
    const STREAM_BYTES: usize = 72;

    /// Creates the record of a collection that has no element yet.
    pub(super) fn new(collection_type: CollectionType, id: u64) -> Record {
        let stream = StreamState::default();
        Record { collection_type, id, count: 0, first: MIDDLE, end: MIDDLE, stream }
    }

    /// Returns whether the collection goes, because it has no element. A stream stays.
    pub(super) fn is_over(&self) -> bool {
        self.count == 0 && self.collection_type != CollectionType::Stream
    }

    /// Parses a stored record; `None` if it is damaged or of a later version.
    pub(super) fn of(stored: &[u8]) -> Option<Record> {
        let number =
            |at: usize| stored.get(at..at + 8).map(|bytes| u64::from_le_bytes(bytes.try_into().expect("8 bytes")));
        let (types, rest) = (CollectionType::ALL, stored.get(1..8)?);
        let collection_type = types.into_iter().find(|known| *known as u8 == stored[0])?;
        let len_bytes = match collection_type {
            CollectionType::List => Record::LIST_BYTES,
            CollectionType::Stream => Record::STREAM_BYTES,
            _ => Record::BYTES,
        };
        if rest != [0; 7] || stored.len() != len_bytes {
            return None;
        }
        let mut record = Record { count: number(16)?, ..Record::new(collection_type, number(8)?) };
        match collection_type {
            CollectionType::List => (record.first, record.end) = (number(24)?, number(32)?),
            CollectionType::Stream => {
                record.stream = StreamState {
                    last: StreamId::of(number(24)?, number(32)?),
                    max_deleted: StreamId::of(number(40)?, number(48)?),
                    added_count: number(56)?,
                    next_number: number(64)?,
                };
            }
            _ => {}
        }
        Some(record)
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(Record::STREAM_BYTES);
        bytes.extend([self.collection_type as u8, 0, 0, 0, 0, 0, 0, 0]);
        let mut put = |numbers: &[u64]| numbers.iter().for_each(|number| bytes.extend(number.to_le_bytes()));
        put(&[self.id, self.count]);
        match self.collection_type {
            CollectionType::List => put(&[self.first, self.end]),
            CollectionType::Stream => {
                let StreamState { last, max_deleted, added_count, next_number } = self.stream;
                put(&[last.ms(), last.seq(), max_deleted.ms(), max_deleted.seq(), added_count, next_number]);
            }
            _ => {}
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
            if collection_type == CollectionType::Stream {
                let (last, max_deleted) = (StreamId::of(9, 1), StreamId::of(8, 2));
                record.stream = StreamState { last, max_deleted, added_count: 5, next_number: 6 };
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
        assert_eq!(Record::of(&[6; Record::BYTES]), None);
    }
}
