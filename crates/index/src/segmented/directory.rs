//! The directory in DRAM: from a signature's prefix to a segment's table.
//!
//! A directory has one entry for each value of `depth` bits. A segment of lesser depth occupies several entries.
//! Readers need only the offset of a segment, and writers its locks. These are in two arrays, so a reader's access
//! costs one cache line.
//!
//! # Order
//! A split directs all readers to the halves before it directs any writer there: it stores the offsets before the
//! tables. Until a half's table is stored, no writer can change the half, so the half shows the same entries as the
//! old segment. A writer in a half has loaded its table; so no reader that begins after that is directed to the old
//! segment.
//!
//! Directories own the tables of their segments: dropping a directory drops each segment once. A directory that is
//! replaced while readers run passes that ownership on and is retired.

use std::mem;
use std::ops::Range;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use pmem::{Dram, Medium, Offset};

use super::counters::LaneCounter;
use super::layout::Geometry;
use super::{Context, Cursor, Garbage, Segmented, Table};
use crate::shared::{Pointer, Word};

/// One directory per partition. `clear` replaces the root, which makes it one step for readers.
#[derive(Debug)]
pub(crate) struct Root<S> {
    directories: Box<[Pointer<Directory<S>>]>,
    /// The number of entries in its segments, as far as they were counted.
    pub(crate) counter: LaneCounter,
    /// The number of times that readers were directed elsewhere. It is raised after readers and before any writer
    /// is directed there. So a thread that finds the same count as before has seen nothing that was written
    /// elsewhere, and may continue to read in the same place.
    led_count: AtomicU64,
}

/// The version of the directories that readers use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct DirectoryVersion {
    root: usize,
    count: u64,
}

/// The directories of a root, for the lookup of many signatures: the place of the directories is loaded once.
#[derive(Debug)]
pub(crate) struct Directories<'a, S>(&'a [Pointer<Directory<S>>]);

#[derive(Debug)]
pub(crate) struct Directory<S> {
    depth: u32,
    /// The number of bits of a signature that lead to an entry here, including those that lead to the partition.
    leading_bits: u32,
    offsets: Box<[Word]>,
    segments: Box<[Pointer<S>]>,
    owns_segments: AtomicBool,
}

/// A value that was boxed and shared, and is dropped with this handle. It is not a box, because readers may still
/// use the value.
#[derive(Debug)]
pub(crate) struct Retired<T>(NonNull<T>);

// SAFETY: the handle is the owner, and its value may be sent and shared.
unsafe impl<T: Send + Sync> Send for Retired<T> {}

impl<T> Retired<T> {
    /// # Safety
    /// `boxed` came from [`Box::into_raw`], and no other code drops it.
    pub(crate) unsafe fn new(boxed: *mut T) -> Retired<T> {
        Retired(NonNull::new(boxed).expect("boxes are never null"))
    }
}

impl<T> std::ops::Deref for Retired<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: it lives until the handle is dropped.
        unsafe { self.0.as_ref() }
    }
}

impl<T> Drop for Retired<T> {
    fn drop(&mut self) {
        // SAFETY: it came from a box, and the handle is dropped only when no thread reads the value any more.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

impl<S: Segmented> Root<S> {
    pub(crate) fn new(directories: impl Iterator<Item = Directory<S>>) -> Box<Root<S>> {
        let directories = directories.map(|directory| Pointer::new(Box::into_raw(Box::new(directory)))).collect();
        Box::new(Root { directories, counter: LaneCounter::default(), led_count: AtomicU64::new(0) })
    }

    #[inline(always)]
    pub(crate) fn directory(&self, partition: usize) -> &Directory<S> {
        // SAFETY: never null; a replaced directory is retired, and every holder of the root is pinned.
        unsafe { &*self.directories[partition].load(Ordering::Acquire) }
    }

    /// Replaces the partition's directory by `directory`, and returns the old one, which no longer owns its
    /// segments.
    pub(crate) fn replace(&self, partition: usize, directory: Directory<S>) -> Retired<Directory<S>> {
        let old = self.directories[partition].swap(Box::into_raw(Box::new(directory)), Ordering::AcqRel);
        // SAFETY: it came from a box, and only one caller can have swapped it out.
        let old = unsafe { Retired::new(old) };
        old.owns_segments.store(false, Ordering::Relaxed);
        old
    }

    /// Replaces `old` by two halves, in a directory of one bit more if necessary. The caller holds the partition's
    /// lock, and retires the result. `is_late` is explained at [`Directory::put_halves`].
    pub(crate) fn put_halves<M: Medium, D: Dram>(
        &self,
        cx: Context<'_, M, D>,
        partition: usize,
        old: &S,
        halves: [Box<S>; 2],
        is_late: bool,
    ) -> Retired<S> {
        if self.directory(partition).depth() == old.depth() {
            let directory = self.replace(partition, self.directory(partition).doubled());
            cx.retire(Garbage::Table(Table::new(directory)));
        }
        let count = || _ = self.led_count.fetch_add(1, Ordering::Release);
        self.directory(partition).put_halves(old, halves, is_late, count)
    }

    /// Returns the version of the directories that readers use now.
    #[inline(always)]
    pub(crate) fn led(&self) -> DirectoryVersion {
        DirectoryVersion { root: ptr::from_ref(self).addr(), count: self.led_count.load(Ordering::Acquire) }
    }

    #[inline(always)]
    pub(crate) fn directories(&self) -> Directories<'_, S> {
        Directories(&self.directories)
    }

    /// Returns the segment at the cursor of a walk.
    pub(crate) fn at_cursor(&self, cursor: Cursor) -> &S {
        let directory = self.directory(cursor.partition);
        directory.segment(cursor.prefix >> 1 >> (63 - directory.depth()))
    }

    /// Returns the offset of the segment that a reader of `signature` searches.
    #[inline(always)]
    pub(crate) fn offset(&self, geometry: Geometry, signature: u64) -> Offset {
        self.directories().offset(geometry, signature)
    }

    /// Returns the offset that a reader of `signature` searches, and the segment that a writer locks.
    #[inline(always)]
    pub(crate) fn both(&self, geometry: Geometry, signature: u64) -> (Offset, &S) {
        let (directory, place) = self.directories().place(geometry, signature);
        (directory.offset(place), directory.segment(place as u64))
    }

    /// Returns the segment that a writer of `signature` locks.
    #[inline(always)]
    pub(crate) fn segment(&self, geometry: Geometry, signature: u64) -> &S {
        let directory = self.directory(geometry.partition(signature));
        directory.segment(geometry.prefix(signature, directory.depth))
    }

    /// Returns every segment once.
    pub(crate) fn segments(&self) -> impl Iterator<Item = &S> {
        (0..self.directories.len()).flat_map(|partition| self.directory(partition).segments())
    }

    pub(crate) fn dram_bytes(&self) -> u64 {
        let entry_bytes = mem::size_of::<Word>() + mem::size_of::<Pointer<S>>();
        let directories = (0..self.directories.len()).map(|partition| self.directory(partition));
        let tables: usize =
            directories.map(|directory| mem::size_of::<Directory<S>>() + directory.offsets.len() * entry_bytes).sum();
        (tables + self.segments().count() * mem::size_of::<S>()) as u64
    }
}

impl<'a, S: Segmented> Directories<'a, S> {
    /// Returns the directory of `signature`, and the index of its entry, which exists.
    #[inline(always)]
    fn place(&self, geometry: Geometry, signature: u64) -> (&'a Directory<S>, usize) {
        let partition = geometry.leading(signature) as usize & (self.0.len() - 1);
        // SAFETY: there are as many directories as partitions, a power of two; never null; a replaced directory is
        // retired, and every holder of the root is pinned.
        let directory = unsafe { &*self.0.get_unchecked(partition).load(Ordering::Acquire) };
        (directory, signature.rotate_left(directory.leading_bits) as usize & (directory.offsets.len() - 1))
    }

    /// Like [`Root::offset`].
    #[inline(always)]
    pub(crate) fn offset(&self, geometry: Geometry, signature: u64) -> Offset {
        let (directory, place) = self.place(geometry, signature);
        directory.offset(place)
    }
}

impl<S> Drop for Root<S> {
    fn drop(&mut self) {
        for directory in &mut self.directories {
            // SAFETY: it came from a box, and no thread uses the root any more.
            drop(unsafe { Box::from_raw(*directory.get_mut()) });
        }
    }
}

impl<S: Segmented> Directory<S> {
    /// Builds the directory of a partition's live segments, which it owns. The error is the offset of a segment
    /// that overlaps another, or `None` if a prefix has no segment.
    pub(crate) fn build(segments: Vec<Box<S>>, geometry: Geometry) -> Result<Directory<S>, Option<Offset>> {
        let depth = segments.iter().map(|segment| segment.depth()).max().ok_or(None)?;
        let count = 1usize << depth;
        let directory: Directory<S> = Directory {
            depth,
            leading_bits: geometry.leading_bits(depth),
            offsets: (0..count).map(|_| Word::new(0)).collect(),
            segments: (0..count).map(|_| Pointer::new(ptr::null_mut())).collect(),
            owns_segments: AtomicBool::new(true),
        };
        for segment in segments {
            if directory.range(&segment).any(|i| !directory.segments[i].load(Ordering::Relaxed).is_null()) {
                return Err(Some(segment.offset()));
            }
            directory.lead_readers(&directory.range(&segment), segment.offset());
            directory.lead_writers(segment);
        }
        let complete = directory.segments.iter().all(|segment| !segment.load(Ordering::Relaxed).is_null());
        if complete { Ok(directory) } else { Err(None) }
    }

    pub(crate) fn depth(&self) -> u32 {
        self.depth
    }

    /// Returns a directory of one bit more over the same segments. It owns them from now on: it must replace the
    /// old one.
    fn doubled(&self) -> Directory<S> {
        let count = self.offsets.len() * 2;
        Directory {
            depth: self.depth + 1,
            leading_bits: self.leading_bits + 1,
            offsets: (0..count).map(|i| Word::new(self.offsets[i / 2].load(Ordering::Relaxed))).collect(),
            segments: (0..count).map(|i| Pointer::new(self.segments[i / 2].load(Ordering::Relaxed))).collect(),
            owns_segments: AtomicBool::new(true),
        }
    }

    /// Replaces `old` by two halves, and returns `old`. Calls `count` between readers and writers. With `is_late`,
    /// a broken variant directs readers last.
    fn put_halves(&self, old: &S, halves: [Box<S>; 2], is_late: bool, count: impl FnOnce()) -> Retired<S> {
        let first = self.range(old).start;
        let old = self.segments[first].load(Ordering::Relaxed);
        let places = halves.each_ref().map(|half| (self.range(half), half.offset()));
        if !is_late {
            places.iter().for_each(|(range, offset)| self.lead_readers(range, *offset));
        }
        count();
        halves.into_iter().for_each(|half| self.lead_writers(half));
        if is_late {
            places.iter().for_each(|(range, offset)| self.lead_readers(range, *offset));
        }
        // SAFETY: it came from a box, and no entry names it any more.
        unsafe { Retired::new(old) }
    }

    /// Returns the offset in this entry.
    #[inline(always)]
    fn offset(&self, place: usize) -> Offset {
        // SAFETY: the index is that of an entry of the directory.
        Offset(unsafe { self.offsets.get_unchecked(place) }.load(Ordering::Acquire))
    }

    #[inline(always)]
    pub(crate) fn segment(&self, prefix: u64) -> &S {
        // SAFETY: never null once built; a replaced segment is retired, and every holder of the directory is
        // pinned.
        unsafe { &*self.segments[prefix as usize].load(Ordering::Acquire) }
    }

    /// Returns every segment once, in the order of prefixes.
    pub(crate) fn segments(&self) -> impl Iterator<Item = &S> {
        let mut next = 0;
        std::iter::from_fn(move || {
            let segment = (next < self.segments.len()).then(|| self.segment(next as u64))?;
            next = self.range(segment).end;
            Some(segment)
        })
    }

    fn lead_readers(&self, range: &Range<usize>, offset: Offset) {
        range.clone().for_each(|i| self.offsets[i].store(offset.0, Ordering::Release));
    }

    /// Directs writers to `segment`. Readers are directed there already; see the module's head.
    fn lead_writers(&self, segment: Box<S>) {
        let (range, table) = (self.range(&segment), Box::into_raw(segment));
        range.for_each(|i| self.segments[i].store(table, Ordering::Release));
    }

    /// Returns the entries of `segment`.
    fn range(&self, segment: &S) -> Range<usize> {
        let shift = self.depth - segment.depth();
        let start = (segment.prefix() << shift) as usize;
        start..start + (1 << shift)
    }
}

impl<S> Drop for Directory<S> {
    fn drop(&mut self) {
        if !*self.owns_segments.get_mut() {
            return;
        }
        let mut last = ptr::null_mut();
        for entry in &mut self.segments {
            let segment = mem::replace(entry.get_mut(), ptr::null_mut());
            if segment != last && !segment.is_null() {
                // SAFETY: it came from a box; entries of one segment are adjacent, so it is dropped once.
                drop(unsafe { Box::from_raw(segment) });
            }
            last = segment;
        }
    }
}
