//! What the operating system counts: the bytes that the process caused to be written, and what the device was asked for.
//!
//! The device's figures have all that a store costs it, the file system's own journal too, and whatever other processes do
//! there meanwhile. The process' figure is its alone, and too high where the cache keeps a file in large pieces: of those all
//! counts that a byte was written to.

use std::fs;
use std::ops::Sub;

use serde::Serialize;

use crate::error::Error;

/// The unit of the device's figures, whatever its own.
const SECTOR_BYTES: u64 = 512;

/// Counts since the process or the machine began, or between two moments.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, Serialize)]
pub(crate) struct Counters {
    /// `write_bytes` of `/proc/self/io`: pages that became dirty, and what was written past the cache.
    pub(crate) written_bytes: u64,
    /// What the device was given.
    pub(crate) device_bytes: u64,
    /// How often the device was told to make durable what it has.
    pub(crate) device_flushes: u64,
}

impl Counters {
    /// As they stand; those of the device are 0 where the kernel does not tell.
    ///
    /// # Errors
    /// If the kernel does not tell about the process.
    pub(crate) fn now((major, minor): (u32, u32)) -> Result<Counters, Error> {
        let process = fs::read_to_string("/proc/self/io")?;
        let device = fs::read_to_string(format!("/sys/dev/block/{major}:{minor}/stat")).unwrap_or_default();
        let fields: Vec<u64> = device.split_whitespace().filter_map(|field| field.parse().ok()).collect();
        let field = |number: usize| fields.get(number).copied().unwrap_or_default();
        Ok(Counters {
            written_bytes: write_bytes(&process).ok_or("/proc/self/io has no write_bytes")?,
            // The seventh and the sixteenth of `Documentation/block/stat.rst`.
            device_bytes: field(6) * SECTOR_BYTES,
            device_flushes: field(15),
        })
    }
}

fn write_bytes(process: &str) -> Option<u64> {
    process.lines().find_map(|line| line.strip_prefix("write_bytes: "))?.parse().ok()
}

impl Sub for Counters {
    type Output = Counters;

    fn sub(self, before: Counters) -> Counters {
        Counters {
            written_bytes: self.written_bytes - before.written_bytes,
            device_bytes: self.device_bytes - before.device_bytes,
            device_flushes: self.device_flushes - before.device_flushes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_process_figure_is_not_that_of_cancelled_writes() {
        assert_eq!(write_bytes("wchar: 7\nwrite_bytes: 4096\ncancelled_write_bytes: 3\n"), Some(4096));
        assert_eq!(write_bytes("wchar: 7\n"), None);
    }
}
