//! A log entry. It combines the entries of the paper's two tiers, (key, `KVFlag`) and (key, pointer, `KFlag`), into the
//! record that begins and the record that ends. The paper's flag 1 (insert) has no record that ends, 2 (delete) has
//! none that begins, 3 (update) has both; 0 (done) is a sequence up to the checkpoint's cut.

use index::Position;
use pmem::Checksum;

use crate::bytes::{Line, is_sealed, put_u32, put_u64, seal_line, u32_at, u64_at};
use crate::layout::{ENTRY_BYTES, SEQUENCE_BITS};

/// The kind of an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Kind {
    /// Nothing: replaces an invalid entry.
    Void = 0,
    /// A record begins, and one may end.
    Put = 1,
    /// A record ends.
    Delete = 2,
    /// The end of a batch, which makes the batch valid.
    BatchEnd = 3,
}

/// A log entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Entry {
    /// The kind.
    pub(crate) kind: Kind,
    /// The record that begins, or none.
    pub(crate) new: Position,
    /// The record that ends, or none.
    pub(crate) old: Position,
    /// The entry's number in its lane.
    pub(crate) sequence: u64,
    /// The last sequence of the lane that was durable before this entry was written.
    pub(crate) durable: u64,
    /// The checksum of the record that begins.
    pub(crate) checksum: u32,
    /// The number of the entry's batch, or 0.
    pub(crate) batch: u64,
    /// The hash of the key; in the end of a batch, its number of entries.
    pub(crate) hash: u64,
}

impl Entry {
    /// Returns true if the entry is void.
    pub(crate) fn is_void(self) -> bool {
        self.kind == Kind::Void
    }

    /// A void entry.
    pub(crate) const VOID: Entry = Entry {
        kind: Kind::Void,
        new: Position::EMPTY,
        old: Position::EMPTY,
        sequence: 0,
        durable: 0,
        checksum: 0,
        batch: 0,
        hash: 0,
    };

    /// Returns the stored form, in a segment of this salt.
    #[inline(always)]
    pub(crate) fn to_line(self, salt: Checksum) -> Line {
        let mut line = [0; ENTRY_BYTES];
        put_u64(&mut line, 0, self.new.word());
        put_u64(&mut line, 8, self.old.word());
        put_u64(&mut line, 16, self.sequence | u64::from(self.kind as u8) << SEQUENCE_BITS);
        put_u64(&mut line, 24, self.durable);
        put_u32(&mut line, 32, self.checksum);
        put_u64(&mut line, 40, self.batch);
        put_u64(&mut line, 48, self.hash);
        seal_line(&mut line, salt, &[]);
        line
    }

    /// Returns the entry of this sequence, if the line is one of a segment of this salt.
    pub(crate) fn from_line(line: &Line, salt: Checksum, sequence: u64) -> Option<Entry> {
        let word = u64_at(line, 16);
        let kind = match word >> SEQUENCE_BITS {
            0 => Kind::Void,
            1 => Kind::Put,
            2 => Kind::Delete,
            3 => Kind::BatchEnd,
            _ => return None,
        };
        let is_it = word & ((1 << SEQUENCE_BITS) - 1) == sequence && is_sealed(line, salt, &[]);
        is_it.then(|| Entry {
            kind,
            new: Position::from_word(u64_at(line, 0)),
            old: Position::from_word(u64_at(line, 8)),
            sequence,
            durable: u64_at(line, 24),
            checksum: u32_at(line, 32),
            batch: u64_at(line, 40),
            hash: u64_at(line, 48),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::salt;

    #[test]
    fn log_line_is_valid_only_in_place() {
        let (here, there) = (salt(&[1; 16]), salt(&[2; 16]));
        for kind in [Kind::Void, Kind::Put, Kind::Delete, Kind::BatchEnd] {
            let (new, old) = (Position::from_word(64), Position::from_word(128));
            let entry = Entry { kind, new, old, sequence: 9, durable: 8, checksum: 7, batch: 6, hash: 5 };
            let line = entry.to_line(here);
            assert_eq!(Entry::from_line(&line, here, 9), Some(entry));
            assert_eq!(Entry::from_line(&line, here, 10), None);
            assert_eq!(Entry::from_line(&line, there, 9), None);
            for bit in 0..512 {
                let mut flipped = line;
                flipped[bit / 8] ^= 1 << (bit % 8);
                assert_eq!(Entry::from_line(&flipped, here, 9), None, "bit {bit}");
            }
        }
        assert_eq!(Entry::from_line(&[0; ENTRY_BYTES], here, 0), None);
    }
}
