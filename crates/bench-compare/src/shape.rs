//! The records, by number: `bench` makes keys and values of them, and knows a value that is not a record's.

use bench::{is_value_of, stamp, write_key};

/// How many records there are, and what they look like.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Shape {
    pub(crate) records: u64,
    pub(crate) key_bytes: usize,
    pub(crate) value_bytes: usize,
}

/// One record's key and value, in memory that is used again.
pub(crate) struct Item {
    pub(crate) key: Vec<u8>,
    pub(crate) value: Vec<u8>,
    version: u64,
}

impl Shape {
    /// What a put of one record has to keep.
    pub(crate) fn item_bytes(&self) -> u64 {
        (self.key_bytes + self.value_bytes) as u64
    }

    pub(crate) fn item(&self) -> Item {
        Item { key: vec![0; self.key_bytes], value: vec![b'v'; self.value_bytes], version: 0 }
    }

    pub(crate) fn is_value_of(&self, record: u64, value: &[u8]) -> bool {
        is_value_of(record, value, self.value_bytes)
    }
}

impl Item {
    /// The key of `record`.
    pub(crate) fn turn_to(&mut self, record: u64) {
        write_key(record, &mut self.key);
    }

    /// The key of `record`, and a new value.
    pub(crate) fn renew(&mut self, record: u64) {
        self.turn_to(record);
        self.version += 1;
        stamp(record, self.version, &mut self.value);
    }
}
