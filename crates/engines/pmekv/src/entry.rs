//! A log entry, the two tiers' entry in one: what the paper keeps as (key, `KVFlag`) and (key, pointer, `KFlag`) is here the record
//! that begins and the record that ends. Of the paper's flags, 1 (insert) has no record that ends, 2 (delete) none that begins,
//! 3 (update) both; 0 (done) is a sequence up to the checkpoint's cut.

use index::Position;
use pmem::Checksum;

use crate::bytes::{Line, is_sealed, put_u32, put_u64, seal_line, u32_at, u64_at};
use crate::layout::{ENTRY_BYTES, SEQUENCE_BITS};

/// What an entry says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Kind {
    /// Nothing: what stood there did not count.
    Void = 0,
    /// A record begins, and perhaps one ends.
    Put = 1,
    /// A record ends.
    Delete = 2,
    /// A batch counts.
    BatchEnd = 3,
}

/// An entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Entry {
    /// What it says.
    pub(crate) kind: Kind,
    /// The record that begins, or none.
    pub(crate) new: Position,
    /// The record that ends, or none.
    pub(crate) old: Position,
    /// Its number in its lane.
    pub(crate) sequence: u64,
    /// What of its lane was durable before it was written.
    pub(crate) durable: u64,
    /// The checksum of the record that begins.
    pub(crate) checksum: u32,
    /// The number of its batch, or 0.
    pub(crate) batch: u64,
    /// The hash of its key; at a batch's end how many entries it has.
    pub(crate) hash: u64,
}

impl Entry {
    /// True if it says nothing.
    pub(crate) fn is_void(self) -> bool {
        self.kind == Kind::Void
    }

    /// An entry that says nothing.
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

    /// As stored, in a segment of this salt.
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

    /// The entry of this sequence, if the line is one of a segment of this salt.
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
    fn log_line_is_valid_only_in_its_place() {
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
