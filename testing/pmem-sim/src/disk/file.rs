//! A file of the simulated disk, as the journal uses it.

use std::io;
use std::ops::Range;

use journal::File;
use pmem::Canary;

use super::{Refusal, SimDisk};
use crate::pages::PAGE_BYTES;
use crate::sim::StepKind;

/// One of the two files, opened.
#[derive(Clone, Debug)]
pub struct SimFile {
    disk: SimDisk,
    number: usize,
}

impl SimFile {
    pub(super) fn new(disk: &SimDisk, number: usize) -> SimFile {
        SimFile { disk: disk.clone(), number }
    }

    fn step<T>(&self, kind: StepKind, done: Result<T, Refusal>) -> io::Result<T> {
        assert!(!self.disk.is_frozen(), "{kind:?} of a file that is open for reading");
        self.disk.report(kind);
        Ok(done?)
    }
}

impl File for SimFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.disk.operate(self.number, |sectors| Ok(sectors.len_bytes()))?)
    }

    fn read_at(&self, into: &mut [u8], at: u64) -> io::Result<()> {
        Ok(self.disk.operate(self.number, |sectors| sectors.read(into, at))?)
    }

    fn read_pages(&self, pages: &mut [u8], at: u64) -> io::Result<()> {
        Ok(self.disk.operate(self.number, |sectors| sectors.read_past_cache(pages, at))?)
    }

    /// Returns only data that is not durable yet, or was not when a sync failed: the rest is not in the cache.
    fn read_cached_at(&self, pages: &mut [u8], at: u64) -> io::Result<usize> {
        Ok(self.disk.operate(self.number, |sectors| {
            let is_cached = |start: &u64| sectors.is_pending(*start..*start + PAGE_BYTES);
            let cached_count = (at..at + pages.len() as u64).step_by(PAGE_BYTES as usize).take_while(is_cached).count();
            let cached_bytes = cached_count * PAGE_BYTES as usize;
            sectors.read(&mut pages[..cached_bytes], at)?;
            Ok(cached_bytes)
        })?)
    }

    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        let written = self.disk.operate(self.number, |sectors| {
            sectors.write(bytes, at);
            Ok(())
        });
        self.step(StepKind::FileWrite, written)
    }

    /// Returns true, so that tests explore writing in complete pages.
    fn has_way_past_cache(&self) -> bool {
        true
    }

    fn allocate(&self, range: Range<u64>) -> io::Result<()> {
        let lacks_space = self.disk.operate(self.number, |sectors| Ok(sectors.lacks_space(&range)))?;
        let grown = if lacks_space { self.disk.grow() } else { Ok(()) };
        let allocated = grown.map_err(Refusal::File).and_then(|()| {
            self.disk.operate(self.number, |sectors| {
                sectors.allocate(&range);
                Ok(())
            })
        });
        self.step(StepKind::FileLength, allocated)
    }

    fn punch(&self, range: Range<u64>) -> io::Result<()> {
        let punched = self.disk.operate(self.number, |sectors| {
            sectors.punch(range);
            Ok(())
        });
        self.step(StepKind::Discard, punched)
    }

    fn spaced_up_to(&self, at: u64, past: u64) -> u64 {
        self.disk.operate(self.number, |sectors| Ok(sectors.spaced_up_to(at, past))).unwrap_or(at)
    }

    fn truncate(&self, to_bytes: u64) -> io::Result<()> {
        let truncated = self.disk.operate(self.number, |sectors| {
            sectors.truncate(to_bytes);
            Ok(())
        });
        self.step(StepKind::FileLength, truncated)
    }

    fn sync(&self) -> io::Result<()> {
        let synced = self.disk.operate(self.number, |sectors| {
            sectors.settle();
            Ok(())
        });
        if let Err(Refusal::Failed) = synced {
            self.disk.0.state.lock().files[self.number].forget();
        }
        self.step(StepKind::FileSync, synced)
    }

    fn breaks(&self, canary: Canary) -> bool {
        self.disk.breaks(canary)
    }
}
