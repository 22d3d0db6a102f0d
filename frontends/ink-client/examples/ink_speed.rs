//! Runs in the guest of `cargo xtask kernel speed`: measures operations by calls of the kernel module or of the
//! library.
//!
//! usage: ink_speed PLACE COUNT
//!
//! PLACE is the module's device, or a directory in which the library keeps a store of the InK engine. One thread
//! inserts, reads, replaces, scans (fifty at a time) and deletes COUNT items in random order; every value that is
//! read is checked. Prints `speed NAME NANOSECONDS` for each operation.
#![expect(clippy::print_stdout, reason = "a program for the terminal")]

use std::error::Error;
use std::ops::ControlFlow;
use std::time::Instant;
use std::{env, process};

use fastrand::Rng;
use hikv::{EngineKind, Options, Store};
use ink_client::{Ink, abi};

const VALUE_BYTES: usize = 256;
/// Items of a scan.
const SCAN_COUNT: usize = 50;
const REGION_BYTES_MAX: u64 = 128 << 20;

type Done = Result<(), Box<dyn Error>>;

/// The module and the library with the same operations.
enum Subject {
    Module(Ink),
    Library(Store),
}

impl Subject {
    fn open(place: &str) -> Result<Subject, Box<dyn Error>> {
        if place == abi::DEVICE {
            return Ok(Subject::Module(Ink::open()?));
        }
        let options = Options::new().engine(EngineKind::Ink).region_bytes_max(REGION_BYTES_MAX);
        let store = options.open(place)?;
        let stats = store.stats();
        println!("said {} {}", stats.medium, stats.durability);
        Ok(Subject::Library(store))
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Done {
        match self {
            Subject::Module(ink) => Ok(ink.put(key, value)?),
            Subject::Library(store) => Ok(store.put(key, value)?),
        }
    }

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Box<dyn Error>> {
        match self {
            Subject::Module(ink) => Ok(ink.get(key)?),
            Subject::Library(store) => Ok(store.get(key)?.map(Vec::from)),
        }
    }

    fn delete(&self, key: &[u8]) -> Done {
        match self {
            Subject::Module(ink) => Ok(ink.delete(key).map(drop)?),
            Subject::Library(store) => Ok(store.delete(key).map(drop)?),
        }
    }

    /// Scans up to `SCAN_COUNT` items from `key` on and returns their number.
    fn scan(&self, key: &[u8]) -> Result<usize, Box<dyn Error>> {
        let mut count = 0;
        match self {
            Subject::Module(ink) => {
                for item in ink.scan(key).take(SCAN_COUNT) {
                    item?;
                    count += 1;
                }
            }
            Subject::Library(store) => {
                store.ordered()?.scan(key, |_, _| {
                    count += 1;
                    if count < SCAN_COUNT { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
                })?;
            }
        }
        Ok(count)
    }
}

fn key(number: u64) -> [u8; 16] {
    let mut key = *b"user000000000000";
    key[8..].copy_from_slice(&number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
    key
}

fn value(number: u64, turn: u8) -> Vec<u8> {
    let mut value = vec![turn; VALUE_BYTES];
    value[..8].copy_from_slice(&number.to_le_bytes());
    value
}

/// Calls `each` with each of `numbers` and prints the mean duration of a call.
fn measure(name: &str, numbers: &[u64], mut each: impl FnMut(u64) -> Done) -> Done {
    let start = Instant::now();
    numbers.iter().try_for_each(|&number| each(number))?;
    println!("speed {name} {}", start.elapsed().as_nanos() / numbers.len() as u128);
    Ok(())
}

fn run(arguments: &[String]) -> Done {
    let [place, count] = arguments else { return Err("usage: ink_speed PLACE COUNT".into()) };
    let (subject, count) = (Subject::open(place)?, count.parse::<u64>()?);
    let (mut numbers, mut random) = ((0..count).collect::<Vec<_>>(), Rng::with_seed(1));
    random.shuffle(&mut numbers);
    measure("insert", &numbers, |number| subject.put(&key(number), &value(number, 1)))?;
    random.shuffle(&mut numbers);
    measure("get", &numbers, |number| match subject.get(&key(number))? {
        Some(found) if found == value(number, 1) => Ok(()),
        _ => Err(format!("item {number} has a wrong value").into()),
    })?;
    measure("update", &numbers, |number| subject.put(&key(number), &value(number, 2)))?;
    let few = &numbers[..numbers.len() / SCAN_COUNT];
    measure("scan of 50", few, |number| match subject.scan(&key(number))? {
        0 => Err(format!("nothing from item {number} on").into()),
        _ => Ok(()),
    })?;
    measure("delete", &numbers, |number| subject.delete(&key(number)))
}

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    if let Err(error) = run(&arguments) {
        println!("lost {error}");
        process::exit(1);
    }
}
