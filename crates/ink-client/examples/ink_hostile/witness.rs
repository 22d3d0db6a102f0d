//! Keys that one process alone writes, and what the kernel says of itself.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::fd::AsRawFd;

use fastrand::Rng;
use ink_client::Ink;

use crate::orderly::key_of;

const KEY_COUNT: u8 = 100;
/// Writes in a wave.
const WRITE_COUNT: usize = 60;
/// What a kernel says of its own faults.
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

/// Keys, and what they hold.
pub(crate) struct Witness {
    ink: Ink,
    written: BTreeMap<Vec<u8>, Vec<u8>>,
    log: File,
    /// Keys of everybody, when they were last counted.
    pub(crate) key_count: u64,
    /// Nodes that merges have made fewer.
    pub(crate) merged_count: u64,
}

impl Witness {
    pub(crate) fn new() -> Result<Witness, Box<dyn Error>> {
        let log = File::open("/dev/kmsg")?;
        // SAFETY: a call without memory, on a descriptor of ours.
        unsafe { libc::fcntl(log.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) };
        Ok(Witness { ink: Ink::open()?, written: BTreeMap::new(), log, key_count: 0, merged_count: 0 })
    }

    /// Writes, while others do harm.
    pub(crate) fn write(&mut self, random: &mut Rng) -> Result<(), Box<dyn Error>> {
        for _ in 0..WRITE_COUNT {
            let key = format!("witness {}", random.u8(..KEY_COUNT)).into_bytes();
            let value: Vec<u8> = (0..random.usize(..500)).map(|_| random.u8(..)).collect();
            match self.ink.put(&key, &value) {
                Ok(()) => _ = self.written.insert(key, value),
                // The others have taken all room, or memory: then nothing has changed.
                Err(error) if matches!(error.raw_os_error(), Some(libc::ENOSPC | libc::ENOMEM)) => {}
                Err(error) => return Err(format!("a put: {error}").into()),
            }
        }
        Ok(())
    }

    /// Looks at everything.
    pub(crate) fn check(&mut self, random: &mut Rng) -> Result<(), Box<dyn Error>> {
        self.faults()?;
        let (key_count, damage_count) = self.ink.check()?;
        (self.key_count, self.merged_count) = (key_count, self.ink.stat()?.merged);
        if damage_count > 0 {
            return Err(format!("{damage_count} contradictions").into());
        }
        for (key, value) in &self.written {
            if self.ink.get(key)?.as_ref() != Some(value) {
                return Err(format!("{} is not what was written", String::from_utf8_lossy(key)).into());
            }
        }
        // Room for the next wave.
        if random.bool() {
            for byte in 0..=u8::MAX {
                self.ink.delete(&key_of(byte))?;
            }
        }
        Ok(())
    }

    /// Reads what the kernel has said since.
    fn faults(&mut self) -> Result<(), Box<dyn Error>> {
        let mut line = [0; 8192];
        loop {
            match self.log.read(&mut line) {
                Ok(len) => {
                    let text = String::from_utf8_lossy(&line[..len]);
                    if FAULTS.iter().any(|fault| text.contains(fault)) {
                        return Err(format!("the kernel says: {text}").into());
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                // What was overwritten before it was read.
                Err(error) if error.raw_os_error() == Some(libc::EPIPE) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}
