//! Runs in the guest of `cargo xtask kernel merges`: deletes most keys of `/dev/hikv-ink`, so that merges shrink the
//! tree at the same time.
//!
//! usage: ink_merges begin|end COUNT
//!
//! `begin` puts COUNT keys and deletes them in order, except one of fifty, until half of the removable nodes are
//! removed. Then it ends, while the module continues to merge, and the machine is powered off. After the next boot
//! `end` requires every key that was not deleted, with its value, and no other key. It deletes the others, waits for
//! the remaining merges, checks again, and unloads the module right after deletes that have requested more merges.
#![expect(clippy::print_stdout, reason = "a program for the terminal")]

use std::error::Error;
use std::{env, io, process, thread};

use ink_client::Ink;

/// One key of this many is kept.
const STAYS_OF: u32 = 50;
/// The most pairs of a node.
const NODE_PAIRS: u32 = 63;
/// Deletes between two checks of the number of removed nodes.
const DELETED_BETWEEN: u32 = 64;

const USAGE: &str = "usage: ink_merges begin|end COUNT";

type Done = Result<(), Box<dyn Error>>;

fn key(number: u32) -> [u8; 16] {
    let mut key = *b"key 000000000000";
    key[12..].copy_from_slice(&number.to_be_bytes());
    key
}

fn value(number: u32) -> Vec<u8> {
    number.to_le_bytes().iter().copied().cycle().take(200).collect()
}

fn stays(number: u32) -> bool {
    number.is_multiple_of(STAYS_OF)
}

/// Returns the least number of nodes removed: the leaves that all keys filled, minus three times those of the kept
/// keys.
fn going(count: u32) -> u64 {
    let leaf_count = count / NODE_PAIRS;
    u64::from(leaf_count - 3 * leaf_count.div_ceil(STAYS_OF))
}

fn begin(ink: &Ink, count: u32) -> Done {
    (0..count).try_for_each(|number| ink.put(&key(number), &value(number)))?;
    let full_bytes = ink.stat()?.live_bytes;
    for number in (0..count).filter(|&number| !stays(number)) {
        if !ink.delete(&key(number))? {
            return Err(format!("key {number} is missing").into());
        }
        let stat = ink.stat()?;
        if number % DELETED_BETWEEN == 1 && stat.merged >= going(count) / 2 {
            println!(
                "{} nodes are gone at key {number}; in use {} bytes, before {full_bytes}",
                stat.merged, stat.live_bytes
            );
            return Ok(());
        }
    }
    Err(format!("all keys are deleted, but only {} nodes were merged", ink.stat()?.merged).into())
}

/// Checks the contents and returns the first key that should be deleted and still exists. All keys behind it must
/// exist, and so must the kept keys.
fn read_all(ink: &Ink, count: u32) -> Result<u32, Box<dyn Error>> {
    let (key_count, damage_count) = ink.check()?;
    let (mut first, mut found_count) = (count, 0);
    for number in 0..count {
        match ink.get(&key(number))? {
            Some(found) if found != value(number) => return Err(format!("key {number} has a wrong value").into()),
            None if stays(number) || number > first => return Err(format!("key {number} is missing").into()),
            found => {
                found_count += u64::from(found.is_some());
                first = if found.is_some() && !stays(number) { first.min(number) } else { first };
            }
        }
    }
    let scanned = ink.scan(b"").try_fold(0, |scanned, item| item.map(|_| scanned + 1))?;
    if (damage_count, key_count, scanned) != (0, found_count, found_count) {
        return Err(format!(
            "{damage_count} contradictions; {found_count} keys found, {key_count} counted, {scanned} scanned"
        )
        .into());
    }
    Ok(first)
}

fn end(ink: &Ink, count: u32) -> Done {
    let first = read_all(ink, count)?;
    let left_bytes = ink.stat()?.live_bytes;
    for number in (first..count).filter(|&number| !stays(number)) {
        ink.delete(&key(number))?;
    }
    // More than half may be removed: the module merged until the power was cut.
    while ink.stat()?.merged < going(count) / 3 {
        thread::yield_now();
    }
    if read_all(ink, count)? != count {
        return Err("a key that was deleted is there".into());
    }
    let stat = ink.stat()?;
    println!(
        "{} nodes more are gone from key {first} on; in use {} bytes, before {left_bytes}",
        stat.merged, stat.live_bytes
    );
    Ok(())
}

/// Puts and deletes this many keys, and unloads the module immediately.
fn unload(ink: Ink, count: u32) -> Done {
    (0..count).try_for_each(|number| ink.put(&key(number), &value(number)))?;
    (0..count).try_for_each(|number| ink.delete(&key(number)).map(drop))?;
    drop(ink);
    // SAFETY: a string that ends with a zero, which the kernel copies.
    if unsafe { libc::syscall(libc::SYS_delete_module, c"hikv_ink".as_ptr(), libc::O_NONBLOCK) } != 0 {
        return Err(format!("unloading: {}", io::Error::last_os_error()).into());
    }
    println!("unloaded");
    Ok(())
}

fn run(arguments: &[String]) -> Done {
    let [what, count] = arguments else { return Err(USAGE.into()) };
    let (ink, count) = (Ink::open()?, count.parse()?);
    match what.as_str() {
        "begin" => begin(&ink, count),
        "end" => end(&ink, count).and_then(|()| unload(ink, count)),
        _ => Err(USAGE.into()),
    }
}

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    if let Err(error) = run(&arguments) {
        println!("lost {error}");
        process::exit(1);
    }
}
