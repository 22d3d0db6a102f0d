//! The disk without a store: the time that every store has to wait for a sync of its log.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering};

use bench::{Need, Subject};

use super::Opening;
use crate::cell::Level;
use crate::error::Error;

/// The smallest write of a file system.
const BLOCK_BYTES: usize = 4096;
/// As long as a store's log can be: larger than a device's own cache.
const FILE_BLOCKS: u64 = 1 << 14;

pub(super) struct Disk {
    file: File,
    level: Level,
    next: AtomicU64,
}

pub(super) fn open(opening: &Opening<'_>) -> Result<Disk, Error> {
    let path = opening.directory.join("blocks");
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
    let disk = Disk { file, level: opening.level, next: AtomicU64::new(0) };
    if disk.file.metadata()?.len() < FILE_BLOCKS * BLOCK_BYTES as u64 {
        (0..FILE_BLOCKS).try_for_each(|_| disk.write())?;
        disk.file.sync_all()?;
    }
    Ok(disk)
}

impl Disk {
    fn write(&self) -> Result<(), Error> {
        let block = self.next.fetch_add(1, Ordering::Relaxed) % FILE_BLOCKS;
        Ok(self.file.write_all_at(&[b'd'; BLOCK_BYTES], block * BLOCK_BYTES as u64)?)
    }
}

impl Subject for Disk {
    fn name(&self) -> String {
        "disk".into()
    }

    fn offers(&self, _need: Need) -> bool {
        false
    }

    fn get_into(&self, _key: &[u8], _value: &mut Vec<u8>) -> Result<bool, Error> {
        Err("the bare disk has no gets".into())
    }

    fn put(&self, _key: &[u8], _value: &[u8]) -> Result<(), Error> {
        self.write()?;
        if self.level == Level::Power {
            self.file.sync_data()?;
        }
        Ok(())
    }

    fn load(&self, _items: &[(&[u8], &[u8])]) -> Result<(), Error> {
        Ok(())
    }

    fn delete(&self, _key: &[u8]) -> Result<bool, Error> {
        Err("the bare disk has no deletes".into())
    }

    fn close(self) -> Result<(), Error> {
        Ok(self.file.sync_data()?)
    }
}
