//! A file's sectors: the durable ones, the pending ones, and those that a failed sync has forgotten.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::ops::Range;
use std::sync::Arc;

use pmem::{LINE_BYTES, Offset};

use crate::pages::{Line, PAGE_BYTES, Pages};

/// The unit that a disk writes completely or not at all.
pub(super) const SECTOR_BYTES: u64 = 512;

const LINE_COUNT: usize = (SECTOR_BYTES / LINE_BYTES) as usize;

/// A sector's content.
pub(super) type Sector = [Line; LINE_COUNT];

/// The contents of something since it was last surely durable.
#[derive(Clone, Hash, Debug)]
pub(super) struct History<T> {
    /// A crash leaves one of them. The first was surely durable; programs read the last, unless `cached` differs.
    pub(super) contents: Vec<T>,
    /// The content that programs read, if no crash leaves it: a failed sync has forgotten it, and a read past the cache
    /// has shown that the disk has another.
    cached: Option<T>,
    /// True if the next sync writes it.
    is_dirty: bool,
}

impl<T: PartialEq> History<T> {
    fn of(durable: T) -> History<T> {
        History { contents: vec![durable], cached: None, is_dirty: false }
    }

    fn last(&self) -> &T {
        self.contents.last().expect("a history holds the durable content")
    }

    fn now(&self) -> &T {
        self.cached.as_ref().unwrap_or_else(|| self.last())
    }

    /// Adds a content. A write makes it dirty again, even with the same content.
    fn set(&mut self, content: T) {
        self.cached = None;
        if *self.last() != content {
            self.contents.push(content);
        }
        self.is_dirty = true;
    }

    /// Returns the content that the disk has. If a failed sync has forgotten the last one, this decides by `number`
    /// whether the disk has it or an earlier one; no crash leaves another from then on.
    fn found_on_disk(&mut self, number: u64) -> T
    where
        T: Copy + Hash,
    {
        if !self.is_dirty && self.contents.len() > 1 {
            let mut hasher = DefaultHasher::new();
            (number, &self.contents).hash(&mut hasher);
            let found = self.contents[hasher.finish() as usize % self.contents.len()];
            self.cached = Some(*self.now()).filter(|cached| *cached != found);
            self.contents = vec![found];
        }
        *self.last()
    }

    /// Drops the earlier contents, if a sync writes the last one. Returns true if programs read the only one left.
    fn settle(&mut self) -> bool {
        if self.is_dirty {
            self.contents.drain(..self.contents.len() - 1);
            self.is_dirty = false;
        }
        self.contents.len() == 1 && self.cached.is_none()
    }
}

/// A simulated file.
#[derive(Clone)]
pub(super) struct Sectors {
    durable: Arc<Pages>,
    /// The pending sectors, by number.
    pending: BTreeMap<u64, History<Sector>>,
    len_bytes: History<u64>,
    /// Sectors whose space was freed.
    holes: Arc<BTreeSet<u64>>,
}

impl Default for Sectors {
    fn default() -> Sectors {
        Sectors::holding(Pages::default(), 0, Arc::default())
    }
}

impl Sectors {
    pub(super) fn holding(pages: Pages, len_bytes: u64, holes: Arc<BTreeSet<u64>>) -> Sectors {
        Sectors { durable: Arc::new(pages), pending: BTreeMap::new(), len_bytes: History::of(len_bytes), holes }
    }

    pub(super) fn len_bytes(&self) -> u64 {
        *self.len_bytes.now()
    }

    pub(super) fn durable(&self) -> &Arc<Pages> {
        &self.durable
    }

    pub(super) fn holes(&self) -> &Arc<BTreeSet<u64>> {
        &self.holes
    }

    pub(super) fn pending(&self) -> impl Iterator<Item = (u64, &History<Sector>)> {
        self.pending.iter().map(|(&number, history)| (number, history))
    }

    /// Returns true if any byte of `range` may differ after a crash, or differs between the cache and the disk.
    pub(super) fn is_pending(&self, range: Range<u64>) -> bool {
        self.pending.range(range.start / SECTOR_BYTES..range.end.div_ceil(SECTOR_BYTES)).next().is_some()
    }

    /// Returns the lengths that a crash may leave.
    pub(super) fn lengths(&self) -> &[u64] {
        &self.len_bytes.contents
    }

    pub(super) fn read(&self, into: &mut [u8], at: u64) -> io::Result<()> {
        let end = at + into.len() as u64;
        if end > self.len_bytes() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.read_durable(into, at);
        for (&number, history) in self.pending.range(at / SECTOR_BYTES..end.div_ceil(SECTOR_BYTES)) {
            let first = number * SECTOR_BYTES;
            let (start, past) = (first.max(at), (first + SECTOR_BYTES).min(end));
            let bytes = to_bytes(history.now());
            into[(start - at) as usize..(past - at) as usize]
                .copy_from_slice(&bytes[(start - first) as usize..(past - first) as usize]);
        }
        Ok(())
    }

    /// Reads like [`Sectors::read`], past the cache: a sector that a failed sync has forgotten shows the content that
    /// the disk has.
    pub(super) fn read_past_cache(&mut self, into: &mut [u8], at: u64) -> io::Result<()> {
        self.read(into, at)?;
        for (number, range) in sectors_of(at, at + into.len() as u64) {
            if let Some(history) = self.pending.get_mut(&number).filter(|history| !history.is_dirty) {
                let start = (number * SECTOR_BYTES + range.start - at) as usize;
                let found = history.found_on_disk(number);
                set_sector(Arc::make_mut(&mut self.durable), number, &found);
                into[start..start + range.end as usize - range.start as usize]
                    .copy_from_slice(&to_bytes(&found)[range.start as usize..range.end as usize]);
            }
        }
        Ok(())
    }

    /// Reads page by page, because most pages are zero, like the buffer into which a region is loaded.
    fn read_durable(&self, mut into: &mut [u8], mut at: u64) {
        while !into.is_empty() {
            let within = (at % PAGE_BYTES) as usize;
            let (piece, rest) = into.split_at_mut(into.len().min(PAGE_BYTES as usize - within));
            match self.durable.page(Offset(at)) {
                Some(page) => {
                    let bytes: Vec<u8> = page.iter().flatten().flat_map(|word| word.to_ne_bytes()).collect();
                    piece.copy_from_slice(&bytes[within..within + piece.len()]);
                }
                None if piece.iter().all(|&byte| byte == 0) => {}
                None => piece.fill(0),
            }
            at += piece.len() as u64;
            into = rest;
        }
    }

    pub(super) fn write(&mut self, bytes: &[u8], at: u64) {
        let end = at + bytes.len() as u64;
        self.lengthen(end);
        for (number, range) in sectors_of(at, end) {
            assert!(!self.holes.contains(&number), "a write to sector {number}, for which there may be no space");
            let mut content = to_bytes(&self.now(number));
            let (start, past) = (range.start + number * SECTOR_BYTES - at, range.end + number * SECTOR_BYTES - at);
            content[range.start as usize..range.end as usize].copy_from_slice(&bytes[start as usize..past as usize]);
            self.set(number, from_bytes(&content));
        }
    }

    /// Returns true if `range` needs new space.
    pub(super) fn lacks_space(&self, range: &Range<u64>) -> bool {
        self.len_bytes() < range.end
            || sectors_of(range.start, range.end).any(|(number, _)| self.holes.contains(&number))
    }

    pub(super) fn allocate(&mut self, range: &Range<u64>) {
        self.lengthen(range.end);
        Arc::make_mut(&mut self.holes)
            .retain(|number| !(range.start / SECTOR_BYTES..range.end.div_ceil(SECTOR_BYTES)).contains(number));
    }

    /// Frees the sectors in `range`. Programs must not rely on the old content; a crash before a sync may leave it.
    pub(super) fn punch(&mut self, range: Range<u64>) {
        for number in range.start / SECTOR_BYTES..range.end / SECTOR_BYTES {
            self.set(number, Sector::default());
            Arc::make_mut(&mut self.holes).insert(number);
        }
    }

    pub(super) fn lengthen(&mut self, to_bytes: u64) {
        if to_bytes > self.len_bytes() {
            self.len_bytes.set(to_bytes);
        }
    }

    /// Returns the first byte from `at` on without space, or `past`.
    pub(super) fn spaced_up_to(&self, at: u64, past: u64) -> u64 {
        let hole = self.holes.range(at / SECTOR_BYTES..past / SECTOR_BYTES).next();
        hole.map_or(past, |&number| number * SECTOR_BYTES)
    }

    /// Sets the length, in complete sectors. New sectors have no space.
    pub(super) fn truncate(&mut self, to_bytes: u64) {
        let holes = Arc::make_mut(&mut self.holes);
        holes.retain(|&number| number < to_bytes.div_ceil(SECTOR_BYTES));
        holes.extend(self.len_bytes.now().div_ceil(SECTOR_BYTES)..to_bytes.div_ceil(SECTOR_BYTES));
        for number in to_bytes.div_ceil(SECTOR_BYTES)..self.len_bytes().div_ceil(SECTOR_BYTES) {
            self.set(number, Sector::default());
        }
        self.len_bytes.set(to_bytes);
    }

    /// Applies a successful sync.
    pub(super) fn settle(&mut self) {
        let durable = Arc::make_mut(&mut self.durable);
        self.pending.retain(|&number, history| {
            let is_settled = history.settle();
            set_sector(durable, number, &history.contents[0]);
            !is_settled
        });
        self.len_bytes.settle();
    }

    /// Applies a failed sync: later ones do not try again.
    pub(super) fn forget(&mut self) {
        self.pending.values_mut().for_each(|history| history.is_dirty = false);
    }

    fn now(&self, number: u64) -> Sector {
        self.pending.get(&number).map_or_else(|| sector(&self.durable, number), |history| *history.now())
    }

    fn set(&mut self, number: u64, content: Sector) {
        let durable = sector(&self.durable, number);
        if content != durable || self.pending.contains_key(&number) {
            self.pending.entry(number).or_insert_with(|| History::of(durable)).set(content);
        }
    }
}

/// Returns the sectors that hold bytes of `start..end`, each with the range of bytes within it.
fn sectors_of(start: u64, end: u64) -> impl Iterator<Item = (u64, Range<u64>)> {
    (start / SECTOR_BYTES..end.div_ceil(SECTOR_BYTES)).map(move |number| {
        let first = number * SECTOR_BYTES;
        (number, start.max(first) - first..end.min(first + SECTOR_BYTES) - first)
    })
}

fn line_at(number: u64, line: usize) -> Offset {
    Offset(number * SECTOR_BYTES + line as u64 * LINE_BYTES)
}

fn sector(pages: &Pages, number: u64) -> Sector {
    std::array::from_fn(|line| pages.line(line_at(number, line)))
}

pub(super) fn set_sector(pages: &mut Pages, number: u64, content: &Sector) {
    for (line, &words) in content.iter().enumerate() {
        pages.set_line(line_at(number, line), words);
    }
}

fn to_bytes(content: &Sector) -> [u8; SECTOR_BYTES as usize] {
    let mut bytes = [0; SECTOR_BYTES as usize];
    for (bytes, word) in bytes.as_chunks_mut().0.iter_mut().zip(content.as_flattened()) {
        *bytes = word.to_ne_bytes();
    }
    bytes
}

fn from_bytes(bytes: &[u8; SECTOR_BYTES as usize]) -> Sector {
    let mut content = Sector::default();
    for (word, bytes) in content.as_flattened_mut().iter_mut().zip(bytes.as_chunks().0) {
        *word = u64::from_ne_bytes(*bytes);
    }
    content
}
