//! The disk alone: what every store that syncs its log has to wait for.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use super::Opened;
use crate::cell::Level;
use crate::error::Error;
use crate::shape::Shape;

/// What a file system writes at least.
const BLOCK_BYTES: usize = 4096;
/// As long as a store's log may be: larger than what a device keeps in a cache of its own.
const FILE_BLOCKS: u64 = 1 << 14;

struct Disk {
    file: File,
    level: Level,
    next: AtomicU64,
}

pub(super) fn open(directory: &Path, level: Level) -> Result<Box<dyn Opened>, Error> {
    let path = directory.join("blocks");
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
    let disk = Disk { file, level, next: AtomicU64::new(0) };
    if disk.file.metadata()?.len() < FILE_BLOCKS * BLOCK_BYTES as u64 {
        (0..FILE_BLOCKS).try_for_each(|_| disk.write())?;
        disk.file.sync_all()?;
    }
    Ok(Box::new(disk))
}

impl Disk {
    fn write(&self) -> Result<(), Error> {
        let block = self.next.fetch_add(1, Ordering::Relaxed) % FILE_BLOCKS;
        Ok(self.file.write_all_at(&[b'd'; BLOCK_BYTES], block * BLOCK_BYTES as u64)?)
    }
}

impl Opened for Disk {
    fn put(&self, _key: &[u8], _value: &[u8]) -> Result<(), Error> {
        self.write()?;
        if self.level == Level::Power {
            self.file.sync_data()?;
        }
        Ok(())
    }

    fn get(&self, _key: &[u8], _value: &mut Vec<u8>) -> Result<bool, Error> {
        Err("there is nothing to get".into())
    }

    fn load(&self, _shape: Shape) -> Result<(), Error> {
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<(), Error> {
        Ok(self.file.sync_data()?)
    }
}
