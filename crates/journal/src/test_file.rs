//! A file in memory for this crate's tests, which can wait at an operation, or make it fail.

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::{File, Files};

/// An operation that the journal is about to do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Operation {
    Read(Range<u64>),
    Write,
    Sync,
    Punch,
}

type Before = dyn Fn(&Operation) -> io::Result<()> + Send + Sync;

/// A test file. Clones are handles to the same one.
#[derive(Clone, Default)]
pub(crate) struct TestFile(Arc<Content>);

#[derive(Default)]
struct Content {
    bytes: Mutex<Vec<u8>>,
    before: Mutex<Option<Arc<Before>>>,
    read_bytes: AtomicU64,
}

impl TestFile {
    /// Calls `before` before each operation, on its thread: it may wait, and its error is the operation's.
    pub(crate) fn interpose(&self, before: impl Fn(&Operation) -> io::Result<()> + Send + Sync + 'static) {
        *self.0.before.lock() = Some(Arc::new(before));
    }

    /// Returns the file's content.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.0.bytes.lock().clone()
    }

    /// Returns the number of bytes that were read.
    pub(crate) fn read_bytes(&self) -> u64 {
        self.0.read_bytes.load(Ordering::Relaxed)
    }

    fn copied(&self) -> TestFile {
        TestFile(Arc::new(Content { bytes: Mutex::new(self.bytes()), ..Content::default() }))
    }

    fn operate<T>(&self, operation: &Operation, act: impl FnOnce(&mut Vec<u8>) -> io::Result<T>) -> io::Result<T> {
        let before = self.0.before.lock().clone();
        before.map_or(Ok(()), |before| before(operation))?;
        act(&mut self.0.bytes.lock())
    }
}

impl Files<TestFile> {
    pub(crate) fn handles(&self) -> Files<TestFile> {
        Files { base: self.base.clone(), log: self.log.clone() }
    }

    /// Returns the files as a process that is killed now leaves them.
    pub(crate) fn copied(&self) -> Files<TestFile> {
        Files { base: self.base.copied(), log: self.log.copied() }
    }
}

impl File for TestFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.bytes.lock().len() as u64)
    }

    fn read_at(&self, into: &mut [u8], at: u64) -> io::Result<()> {
        let range = at..at + into.len() as u64;
        self.operate(&Operation::Read(range), |bytes| {
            let found = bytes.get(at as usize..at as usize + into.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
            into.copy_from_slice(found);
            self.0.read_bytes.fetch_add(into.len() as u64, Ordering::Relaxed);
            Ok(())
        })
    }

    fn read_cached_at(&self, pages: &mut [u8], at: u64) -> io::Result<usize> {
        self.read_at(pages, at).map(|()| pages.len())
    }

    fn write_at(&self, written: &[u8], at: u64) -> io::Result<()> {
        self.operate(&Operation::Write, |bytes| {
            let (start, end) = (at as usize, at as usize + written.len());
            let len = bytes.len().max(end);
            bytes.resize(len, 0);
            bytes[start..end].copy_from_slice(written);
            Ok(())
        })
    }

    fn allocate(&self, range: Range<u64>) -> io::Result<()> {
        let mut bytes = self.0.bytes.lock();
        let len = bytes.len().max(range.end as usize);
        bytes.resize(len, 0);
        Ok(())
    }

    fn punch(&self, range: Range<u64>) -> io::Result<()> {
        self.operate(&Operation::Punch, |bytes| {
            bytes[range.start as usize..range.end as usize].fill(0);
            Ok(())
        })
    }

    fn truncate(&self, to_bytes: u64) -> io::Result<()> {
        self.0.bytes.lock().resize(to_bytes as usize, 0);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        self.operate(&Operation::Sync, |_| Ok(()))
    }
}
