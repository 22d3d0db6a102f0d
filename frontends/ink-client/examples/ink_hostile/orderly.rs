//! Valid requests alongside the hostile ones: whatever the other processes do, each must have its documented effect.

use std::io;

use fastrand::Rng;
use ink_client::abi;
use ink_client::{Batch, Ink, When};
use libc::{ENOENT, ENOMEM, ENOSPC};

use crate::cases::Descriptors;

/// Errors that a valid request may have, because there is always a process that has used up all space.
const FINE: [i32; 2] = [ENOMEM, ENOSPC];
/// The number of blocks of neighbouring keys; each block has as many keys as a submission takes.
const BLOCK_COUNT: u8 = 32;

/// Sends a valid request, which also creates data for the hostile requests.
pub(crate) fn well_formed(descriptors: &Descriptors, random: &mut Rng) -> Result<(), String> {
    let (ink, byte) = (&descriptors.both, random.u8(..));
    let key = key_of(byte);
    let len = match random.u8(..120) {
        // The longest item must not hinder any scan.
        0 => abi::VALUE_BYTES_MAX,
        1 => random.usize(..abi::VALUE_BYTES_MAX),
        _ => random.usize(..600),
    };
    let value = vec![byte; len];
    let done = match random.u8(..8) {
        0 => ink.delete(&key).map(drop),
        1 => ink.get(&key).and_then(|found| whole(byte, found.as_deref())),
        2 => ink.scan(&key).take(40).try_for_each(|item| item.and_then(|(key, value)| of_key(&key, &value))),
        3 => ink.put_when(&key, &value, if random.bool() { When::IfAbsent } else { When::IfPresent }).map(drop),
        4 => {
            let mut batch = Batch::new();
            (0..random.usize(..64)).for_each(|_| _ = batch.put(&key, &value, When::Always));
            each_fine(ink, batch)
        }
        5 => neighbours(ink, random),
        _ => ink.put(&key, &value),
    };
    match done {
        Err(error) if !error.raw_os_error().is_some_and(|number| FINE.contains(&number)) => {
            Err(format!("a valid request failed: {error}"))
        }
        _ => Ok(()),
    }
}

/// Puts or deletes a block of neighbouring keys: the kernel merges the resulting sparse nodes while other processes
/// attack.
fn neighbours(ink: &Ink, random: &mut Rng) -> io::Result<()> {
    let (block, is_put) = (random.u8(..BLOCK_COUNT), random.bool());
    let keys: Vec<[u8; 3]> = (0..abi::SUBMIT_COUNT_MAX as u8).map(|byte| [b'n', block, byte]).collect();
    let mut batch = Batch::new();
    for key in &keys {
        _ = if is_put { batch.put(key, &key[2..], When::Always) } else { batch.delete(key) };
    }
    each_fine(ink, batch)
}

/// Submits puts and deletes; each must have one of the results that it may have on its own.
fn each_fine(ink: &Ink, batch: Batch<'_>) -> io::Result<()> {
    let mut errors = ink.submit(batch)?.into_iter().map(|done| done.errno);
    match errors.find(|errno| ![0, ENOENT].contains(errno) && !FINE.contains(errno)) {
        Some(errno) => Err(io::Error::from_raw_os_error(errno)),
        None => Ok(()),
    }
}

/// Returns a key whose value is checked. Processes that write arbitrary memory, which may hold an answer with such
/// keys, use shorter keys.
pub(crate) fn key_of(byte: u8) -> [u8; 3] {
    [b'h', b'-', byte]
}

/// Checks a value: these processes write the last byte of the key, repeated.
fn whole(byte: u8, found: Option<&[u8]>) -> io::Result<()> {
    match found.filter(|value| value.iter().any(|&other| other != byte)) {
        None => Ok(()),
        Some(value) => Err(io::Error::other(format!(
            "{} bytes, not all of them {byte}: {:?}",
            value.len(),
            &value[..value.len().min(16)]
        ))),
    }
}

fn of_key(key: &[u8], value: &[u8]) -> io::Result<()> {
    if let [b'h', b'-', byte] | [b'n', _, byte] = key { whole(*byte, Some(value)) } else { Ok(()) }
}
