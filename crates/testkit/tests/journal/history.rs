//! What was flushed, in its order, and so what a crash may leave: a prefix of it. A word that was stored and is not flushed
//! by that prefix may be there or not, as on memory that is persistent itself.

use pmem::Span;

/// The entries of a log since a known state.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    start: Vec<u8>,
    /// In pieces: where, and which bytes. No bytes are a growth up to there.
    entries: Vec<Vec<(usize, Vec<u8>)>>,
    /// Bytes that were stored without a record: where, which, and after how many entries.
    loose: Vec<(usize, Vec<u8>, usize)>,
    /// How many of them survive loss of power.
    durable: usize,
    /// How many survive the death of the process.
    written: usize,
    /// How many were durable when the last of them was written.
    marked: usize,
    /// How many survive loss of power and a flipped bit, or the store does not open: a frame that is durable says that they are.
    proved: usize,
}

fn sets(pieces: &[(usize, Vec<u8>)], i: usize) -> bool {
    pieces.iter().any(|(at, bytes)| (*at..at + bytes.len()).contains(&i))
}

/// How a life ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ended {
    Killed,
    WithoutPower,
}

impl History {
    pub(crate) fn new(region_bytes: u64) -> History {
        History { start: vec![0; region_bytes as usize], ..History::default() }
    }

    /// Something was flushed in one piece.
    pub(crate) fn push(&mut self, pieces: impl IntoIterator<Item = (Span, Vec<u8>)>) {
        self.entries.push(pieces.into_iter().map(|(span, bytes)| (span.start.0 as usize, bytes)).collect());
    }

    /// All of it survives such an end from now on.
    pub(crate) fn acknowledge(&mut self, ended: Ended) {
        if self.entries.len() > self.written {
            self.marked = self.durable;
        }
        self.written = self.entries.len();
        if ended == Ended::WithoutPower {
            (self.durable, self.proved) = (self.written, self.marked);
        }
    }

    /// The region gets longer.
    pub(crate) fn push_growth(&mut self, region_bytes: u64) {
        self.entries.push(vec![(region_bytes as usize, Vec::new())]);
    }

    /// What was pushed last did not take place.
    pub(crate) fn withdraw(&mut self) {
        self.entries.pop();
    }

    /// True if `found` is what such an end may have left. From then on that is the whole history.
    pub(crate) fn accept(&mut self, found: &[u8], ended: Ended) -> bool {
        let is_legal = self.allows(found, ended);
        if is_legal {
            *self = History { start: found.to_vec(), ..History::default() };
        }
        is_legal
    }

    /// As [`History::accept`], and nothing changes.
    pub(crate) fn allows(&self, found: &[u8], ended: Ended) -> bool {
        self.allows_from(if ended == Ended::Killed { self.written } else { self.durable }, found)
    }

    /// True if `found` is what loss of power and a flipped bit of the log may have left.
    pub(crate) fn allows_flipped(&self, found: &[u8]) -> bool {
        self.allows_from(self.proved, found)
    }

    fn allows_from(&self, least: usize, found: &[u8]) -> bool {
        self.prefixes().enumerate().skip(least).any(|(count, region)| self.is_like(count, &region, found))
    }

    /// True if `found` is `region`, that of the first `count` entries, or differs by what was stored since they set it.
    fn is_like(&self, count: usize, region: &[u8], found: &[u8]) -> bool {
        let may_be_stored = |i: usize| {
            self.loose.iter().any(|(at, bytes, after)| {
                (*at..at + bytes.len()).contains(&i)
                    && bytes[i - at] == found[i]
                    && !self.entries.get(*after..count).is_some_and(|later| later.iter().any(|pieces| sets(pieces, i)))
            })
        };
        region.len() == found.len() && (0..found.len()).all(|i| region[i] == found[i] || may_be_stored(i))
    }

    /// Something is stored, and may be flushed later.
    pub(crate) fn store(&mut self, at: usize, bytes: Vec<u8>) {
        self.loose.push((at, bytes, self.entries.len()));
    }

    /// In words, how `found` differs from the prefix that is most like it.
    pub(crate) fn difference(&self, found: &[u8]) -> String {
        let distance =
            |region: &[u8]| (0..found.len().max(region.len())).filter(|&i| region.get(i) != found.get(i)).count();
        let (nearest, region) = self
            .prefixes()
            .enumerate()
            .min_by_key(|(_, region)| distance(region))
            .expect("no entries are a prefix, too");
        let first = (0..found.len()).find(|&i| region.get(i) != found.get(i));
        format!(
            "{} entries, {} durable, {} written; most like the first {nearest}, but for {} of {} bytes from {first:?} on \
             (it should have {})",
            self.entries.len(),
            self.durable,
            self.written,
            distance(&region),
            found.len(),
            region.len()
        )
    }

    /// The region after no entry, the first, the first two, ...
    fn prefixes(&self) -> impl Iterator<Item = Vec<u8>> {
        let mut region = self.start.clone();
        let after = self.entries.iter().map(move |pieces| {
            for (at, bytes) in pieces {
                region.resize(region.len().max(at + bytes.len()), 0);
                region[*at..at + bytes.len()].copy_from_slice(bytes);
            }
            region.clone()
        });
        [self.start.clone()].into_iter().chain(after)
    }
}
