//! The order of everything that was flushed, and so the legal states after a crash: a prefix of it. A word that was
//! stored but is not flushed by that prefix may be present or not, as on persistent memory.

use pmem::Span;

/// The entries of a log since a known state.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    start: Vec<u8>,
    /// Each entry is a list of places and bytes. Empty bytes are a growth up to that place.
    entries: Vec<Vec<(usize, Vec<u8>)>>,
    /// Bytes that were stored without a record: the place, the bytes, and the number of entries before them.
    loose: Vec<(usize, Vec<u8>, usize)>,
    /// The number of entries that survive a loss of power.
    durable: usize,
    /// The number of entries that survive the death of the process.
    written: usize,
    /// The number of entries that were durable when the last entry was written.
    marked: usize,
    /// The number of entries that survive a loss of power and a flipped bit unless the store refuses to open: a durable
    /// frame records that they are durable.
    proved: usize,
}

fn sets(pieces: &[(usize, Vec<u8>)], i: usize) -> bool {
    pieces.iter().any(|(at, bytes)| (*at..at + bytes.len()).contains(&i))
}

/// The end of a life.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ended {
    Killed,
    WithoutPower,
}

impl History {
    pub(crate) fn new(region_bytes: u64) -> History {
        History { start: vec![0; region_bytes as usize], ..History::default() }
    }

    /// Records bytes that were flushed in one piece.
    pub(crate) fn push(&mut self, pieces: impl IntoIterator<Item = (Span, Vec<u8>)>) {
        self.entries.push(pieces.into_iter().map(|(span, bytes)| (span.start.0 as usize, bytes)).collect());
    }

    /// Records that every entry survives such an end from now on.
    pub(crate) fn acknowledge(&mut self, ended: Ended) {
        if self.entries.len() > self.written {
            self.marked = self.durable;
        }
        self.written = self.entries.len();
        if ended == Ended::WithoutPower {
            (self.durable, self.proved) = (self.written, self.marked);
        }
    }

    /// Records that the region grows.
    pub(crate) fn push_growth(&mut self, region_bytes: u64) {
        self.entries.push(vec![(region_bytes as usize, Vec::new())]);
    }

    /// Removes the last entry, which did not take effect.
    pub(crate) fn withdraw(&mut self) {
        self.entries.pop();
    }

    /// Returns true if such an end may have left `found`, which then becomes the start of the history.
    pub(crate) fn accept(&mut self, found: &[u8], ended: Ended) -> bool {
        let is_legal = self.allows(found, ended);
        if is_legal {
            *self = History { start: found.to_vec(), ..History::default() };
        }
        is_legal
    }

    /// Like [`History::accept`], but changes nothing.
    pub(crate) fn allows(&self, found: &[u8], ended: Ended) -> bool {
        self.allows_from(if ended == Ended::Killed { self.written } else { self.durable }, found)
    }

    /// Returns true if a loss of power and a flipped bit of the log may have left `found`.
    pub(crate) fn allows_flipped(&self, found: &[u8]) -> bool {
        self.allows_from(self.proved, found)
    }

    fn allows_from(&self, least: usize, found: &[u8]) -> bool {
        self.prefixes().enumerate().skip(least).any(|(count, region)| self.is_like(count, &region, found))
    }

    /// Returns true if `found` equals `region`, the state after the first `count` entries, except for bytes that were
    /// stored after these entries had set them.
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

    /// Records a store, which may be flushed later.
    pub(crate) fn store(&mut self, at: usize, bytes: Vec<u8>) {
        self.loose.push((at, bytes, self.entries.len()));
    }

    /// Describes the difference between `found` and the most similar prefix.
    pub(crate) fn difference(&self, found: &[u8]) -> String {
        let distance =
            |region: &[u8]| (0..found.len().max(region.len())).filter(|&i| region.get(i) != found.get(i)).count();
        let (nearest, region) = self
            .prefixes()
            .enumerate()
            .min_by_key(|(_, region)| distance(region))
            .expect("the empty prefix always exists");
        let first = (0..found.len()).find(|&i| region.get(i) != found.get(i));
        format!(
            "{} entries, {} durable, {} written; most similar to the first {nearest}, with {} of {} bytes different from \
             {first:?} on (expected length: {})",
            self.entries.len(),
            self.durable,
            self.written,
            distance(&region),
            found.len(),
            region.len()
        )
    }

    /// Returns the regions after no entry, after the first, after the first two, and so on.
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
