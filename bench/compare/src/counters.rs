//! Counters of the operating system: bytes that the process wrote and read, and writes and flushes of the block device.
//!
//! The device's figures contain the complete cost of a store, including the file system's own journal, and also the
//! writes of other processes during that time. The process' figure contains only its own writes. That figure is too
//! high if the page cache keeps a file in large pages, because a large page counts completely as soon as one byte of it
//! is written.

use std::fs;
use std::ops::Sub;

use serde::Serialize;

use crate::error::Error;

/// The unit of the device's figures, whatever its own sector size.
const SECTOR_BYTES: u64 = 512;

/// Counts since the process or the machine started, or between two moments.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, Serialize)]
pub(crate) struct Counters {
    /// `write_bytes` of `/proc/self/io`: pages that became dirty, and writes past the cache.
    pub(crate) written_bytes: u64,
    /// `read_bytes` of the same file: bytes that the process read from storage, past the cache or for it.
    pub(crate) read_bytes: u64,
    /// Bytes written to the device.
    pub(crate) device_bytes: u64,
    /// Flush requests to the device.
    pub(crate) device_flushes: u64,
}

impl Counters {
    /// Reads the counters; those of the device are 0 if the kernel does not provide them.
    ///
    /// # Errors
    /// If the kernel does not provide the process' counters.
    pub(crate) fn now((major, minor): (u32, u32)) -> Result<Counters, Error> {
        let process = fs::read_to_string("/proc/self/io")?;
        let device = fs::read_to_string(format!("/sys/dev/block/{major}:{minor}/stat")).unwrap_or_default();
        let fields: Vec<u64> = device.split_whitespace().filter_map(|field| field.parse().ok()).collect();
        let field = |number: usize| fields.get(number).copied().unwrap_or_default();
        Ok(Counters {
            written_bytes: figure(&process, "write_bytes").ok_or("/proc/self/io has no write_bytes")?,
            read_bytes: figure(&process, "read_bytes").ok_or("/proc/self/io has no read_bytes")?,
            // Fields 7 and 16 of `Documentation/block/stat.rst`.
            device_bytes: field(6) * SECTOR_BYTES,
            device_flushes: field(15),
        })
    }
}

fn figure(process: &str, name: &str) -> Option<u64> {
    process.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))?.parse().ok()
}

impl Sub for Counters {
    type Output = Counters;

    fn sub(self, before: Counters) -> Counters {
        Counters {
            written_bytes: self.written_bytes - before.written_bytes,
            read_bytes: self.read_bytes - before.read_bytes,
            device_bytes: self.device_bytes - before.device_bytes,
            device_flushes: self.device_flushes - before.device_flushes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_figure_excludes_cancelled_writes() {
        let process = "wchar: 7\nread_bytes: 512\nwrite_bytes: 4096\ncancelled_write_bytes: 3\n";
        assert_eq!(["write_bytes", "read_bytes"].map(|name| figure(process, name)), [Some(4096), Some(512)]);
        assert_eq!(figure("wchar: 7\n", "write_bytes"), None);
    }
}
