//! What was flushed, in its order, and so what a crash may leave.

use pmem::Span;

/// The entries of a log since a known state.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    start: Vec<u8>,
    entries: Vec<Vec<(usize, Vec<u8>)>>,
    /// How many of them survive loss of power.
    durable: usize,
    /// How many survive the death of the process.
    written: usize,
}

/// How a life ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ended {
    Killed,
    WithoutPower,
}

impl History {
    pub(crate) fn new(region_bytes: u64) -> History {
        History { start: vec![0; region_bytes as usize], entries: Vec::new(), durable: 0, written: 0 }
    }

    /// Something was flushed in one piece.
    pub(crate) fn push(&mut self, pieces: impl IntoIterator<Item = (Span, Vec<u8>)>) {
        self.entries.push(pieces.into_iter().map(|(span, bytes)| (span.start.0 as usize, bytes)).collect());
    }

    /// All of it survives such an end from now on.
    pub(crate) fn acknowledge(&mut self, ended: Ended) {
        self.written = self.entries.len();
        if ended == Ended::WithoutPower {
            self.durable = self.written;
        }
    }

    /// The region got longer.
    pub(crate) fn grow(&mut self, region_bytes: usize) {
        self.start.resize(region_bytes.max(self.start.len()), 0);
    }

    /// True if `found` is what such an end may have left. From then on that is the whole history.
    pub(crate) fn accept(&mut self, found: &[u8], ended: Ended) -> bool {
        let is_legal = self.allows(found, ended);
        if is_legal {
            *self = History { start: found.to_vec(), entries: Vec::new(), durable: 0, written: 0 };
        }
        is_legal
    }

    /// As [`History::accept`], and nothing changes.
    pub(crate) fn allows(&self, found: &[u8], ended: Ended) -> bool {
        let least = if ended == Ended::Killed { self.written } else { self.durable };
        let mut region = self.start.clone();
        region.resize(found.len().max(region.len()), 0);
        let mut is_legal = least == 0 && region == found;
        for (i, pieces) in self.entries.iter().enumerate() {
            for (at, bytes) in pieces {
                region[*at..at + bytes.len()].copy_from_slice(bytes);
            }
            is_legal |= i + 1 >= least && region == found;
        }
        is_legal
    }
}
