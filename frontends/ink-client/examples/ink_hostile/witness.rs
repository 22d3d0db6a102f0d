//! Keys that only one process writes, and the kernel's log.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::fd::AsRawFd;

use fastrand::Rng;
use ink_client::Ink;

use crate::orderly::key_of;

const KEY_COUNT: u8 = 100;
/// Writes per wave.
const WRITE_COUNT: usize = 60;
/// Words in the kernel's log that indicate a fault.
const FAULTS: [&str; 9] = [
    "BUG:",
    "kernel BUG",
    "WARNING:",
    "Oops",
    "general protection",
    "KASAN",
    "UBSAN",
    "soft lockup",
    "blocked for more than",
];

/// The keys written by this process, with their values.
pub(crate) struct Witness {
    ink: Ink,
    written: BTreeMap<Vec<u8>, Vec<u8>>,
    log: File,
    /// The number of keys of all processes at the last count.
    pub(crate) key_count: u64,
    /// The number of nodes removed by merges.
    pub(crate) merged_count: u64,
}

impl Witness {
    pub(crate) fn new() -> Result<Witness, Box<dyn Error>> {
        let log = File::open("/dev/kmsg")?;
        // SAFETY: a call without memory, on a descriptor of ours.
        unsafe { libc::fcntl(log.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) };
        Ok(Witness { ink: Ink::open()?, written: BTreeMap::new(), log, key_count: 0, merged_count: 0 })
    }

    /// Writes while the other processes attack.
    pub(crate) fn write(&mut self, random: &mut Rng) -> Result<(), Box<dyn Error>> {
        for _ in 0..WRITE_COUNT {
            let key = format!("witness {}", random.u8(..KEY_COUNT)).into_bytes();
            let value: Vec<u8> = (0..random.usize(..500)).map(|_| random.u8(..)).collect();
            match self.ink.put(&key, &value) {
                Ok(()) => _ = self.written.insert(key, value),
                // The other processes have used up all space or memory: nothing has changed.
                Err(error) if matches!(error.raw_os_error(), Some(libc::ENOSPC | libc::ENOMEM)) => {}
                Err(error) => return Err(format!("a put: {error}").into()),
            }
        }
        Ok(())
    }

    /// Checks everything.
    pub(crate) fn check(&mut self, random: &mut Rng) -> Result<(), Box<dyn Error>> {
        self.faults()?;
        let (key_count, damage_count) = self.ink.check()?;
        (self.key_count, self.merged_count) = (key_count, self.ink.stat()?.merged);
        if damage_count > 0 {
            return Err(format!("{damage_count} contradictions").into());
        }
        for (key, value) in &self.written {
            if self.ink.get(key)?.as_ref() != Some(value) {
                return Err(format!("{}: not the written value", String::from_utf8_lossy(key)).into());
            }
        }
        // Frees space for the next wave.
        if random.bool() {
            for byte in 0..=u8::MAX {
                self.ink.delete(&key_of(byte))?;
            }
        }
        Ok(())
    }

    /// Reads the kernel's log since the last call.
    fn faults(&mut self) -> Result<(), Box<dyn Error>> {
        let mut line = [0; 8192];
        loop {
            match self.log.read(&mut line) {
                Ok(len) => {
                    let text = String::from_utf8_lossy(&line[..len]);
                    if FAULTS.iter().any(|fault| text.contains(fault)) {
                        return Err(format!("fault in the kernel's log: {text}").into());
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                // A message was overwritten before it was read.
                Err(error) if error.raw_os_error() == Some(libc::EPIPE) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}
