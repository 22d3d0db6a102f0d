//! Openings of stores that are large enough for several threads, and a measurement of an opening after a kill: a
//! process loads a store and is killed, and this one opens the store. Times are printed, and not asserted. `cargo test
//! --release -p hikv-engine-pmekv --test pmekv opening -- --ignored --nocapture`.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use engine::prelude::*;
use engine::{Cursor, Error, Progress};
use engine_pmekv::{Options, Pmekv};
use pmem_os::{HostDram, MapOptions, Mapped};

use crate::subject::PARAMETERS;

const KEY_COUNT: u64 = 10_000_000;
const VALUE: [u8; 64] = [7; 64];
/// The environment variable with the path of the region for the loading process.
const LOADS_AT: &str = "HIKV_PMEKV_LOADS_AT";
const LOADED: &str = "loaded";

/// Returns keys in an unpredictable order, against caches.
fn key(number: u64) -> [u8; 16] {
    let mixed = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (u128::from(mixed) << 64 | u128::from(number)).to_be_bytes()
}

fn made(region: &Path, options: Options) -> Pmekv<Mapped, HostDram> {
    let parameters = heap::Parameters { partition_count: 16, ..PARAMETERS };
    let mapped = Mapped::create(region, heap::Parameters::REGION_BYTES_DEFAULT, MapOptions::default()).unwrap();
    Pmekv::format(mapped, HostDram, &parameters, options).unwrap()
}

/// Loads a store, with checkpoints as the background makes them, and waits to be killed.
#[expect(clippy::print_stdout, reason = "the other process reads it")]
fn load(region: &Path) {
    let store = made(region, Options::default());
    thread::scope(|scope| {
        scope.spawn(|| {
            loop {
                if store.step().unwrap() == Progress::Idle {
                    thread::park_timeout(Duration::from_millis(1));
                }
            }
        });
        (0..KEY_COUNT).for_each(|number| store.put(&key(number), &VALUE).unwrap());
        println!("{LOADED}");
    });
}

/// The number of keys of a checkpoint, and of entries after it: two threads read them.
const MANY: u64 = 150_000;

/// Asserts that a store opened without a close has the keys of a checkpoint, changed by `change`.
fn is_opened_as_left(change: impl Fn(u64) -> Option<u8>) {
    let home = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a directory");
    let region = home.path().join("region");
    let store = made(&region, Options { log_entry_count_max: 1 << 20, ..Options::default() });
    let ordered = |number: u64| number.to_be_bytes();
    (0..MANY).for_each(|number| store.put(&ordered(2 * number), &[0]).unwrap());
    store.checkpoint().unwrap();
    let mut expected: BTreeMap<[u8; 8], u8> = (0..MANY).map(|number| (ordered(2 * number), 0)).collect();
    for number in 0..2 * MANY {
        match change(number) {
            Some(value) if value > 0 => {
                store.put(&ordered(number), &[value]).unwrap();
                expected.insert(ordered(number), value);
            }
            Some(_) => assert_eq!(store.delete(&ordered(number)).unwrap(), expected.remove(&ordered(number)).is_some()),
            None => {}
        }
    }
    drop(store);
    let reported = Mutex::new((0, 0));
    let watch = |done, total| *reported.lock().unwrap() = (done, total);
    let mapped = Mapped::open(&region, MapOptions::default()).unwrap();
    let store = Pmekv::open_with_progress(mapped, HostDram, Options::default(), &watch).unwrap();
    let (mut found, mut cursor) = (Vec::new(), Cursor::Start);
    while !cursor.is_done() {
        let mut note = |key: &[u8], value: &[u8], _| found.push((key.try_into().unwrap(), value[0]));
        cursor = store.walk(cursor, &mut note).unwrap();
    }
    assert!(found.iter().copied().eq(expected), "{} keys", found.len());
    let (done, total) = *reported.lock().unwrap();
    assert!(done > 0 && done <= total, "{done} of {total}");
}

#[test]
fn threads_read_the_last_writes() {
    // New keys, new values, and deletes, everywhere.
    is_opened_as_left(|number| [Some(7), None, Some(0), Some(9)][number as usize % 4]);
    // All keys that the second thread reads from the checkpoint have been deleted.
    is_opened_as_left(|number| if number < MANY { (number % 8 == 0).then_some(3) } else { Some(0) });
}

/// All keys but one that the second thread reads from the checkpoint have been deleted since, and that one's record is
/// damaged.
#[test]
fn damage_among_superseded_keys_is_reported() {
    let home = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a directory");
    let region = home.path().join("region");
    let store = made(&region, Options { log_entry_count_max: 1 << 20, ..Options::default() });
    let (rotten, value) = (MANY - 1, *b"a value of which there is one alone");
    (0..rotten).for_each(|number| store.put(&number.to_be_bytes(), &[0]).unwrap());
    store.put(&rotten.to_be_bytes(), &value).unwrap();
    store.checkpoint().unwrap();
    (MANY / 2 - 1_000..rotten).for_each(|number| assert!(store.delete(&number.to_be_bytes()).unwrap()));
    drop(store);
    let mut bytes = fs::read(&region).unwrap();
    let at = bytes.windows(value.len()).position(|bytes| *bytes == value).expect("the value is in the region");
    bytes[at] ^= 1;
    fs::write(&region, bytes).unwrap();
    let mapped = Mapped::open(&region, MapOptions { writable: false, ..MapOptions::default() }).unwrap();
    let store = Pmekv::open_skipping_damage(mapped, HostDram, Options::default(), &|_, _| {}).unwrap();
    let (mut count, mut reported) = (0, Vec::new());
    let mut report = |error: Error| {
        reported.push(error.to_string());
        Ok(())
    };
    store.walk_skipping_damage(Cursor::Start, &mut |_, _, _| count += 1, &mut report).unwrap();
    assert_eq!((count, reported.len()), (MANY / 2 - 1_000, 1), "{reported:?}");
    assert!(reported[0].contains("a record's checksum does not fit"), "{reported:?}");
}

#[test]
#[ignore = "a measurement"]
#[expect(clippy::print_stdout, reason = "a table for reading")]
fn opening_time() {
    if let Some(region) = env::var_os(LOADS_AT) {
        return load(&PathBuf::from(region));
    }
    let home = tempfile::tempdir_in("/dev/shm").expect("a memory file system");
    let region = home.path().join("region");
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", "opening::opening_time", "--ignored", "--nocapture"]).env(LOADS_AT, &region);
    let mut loader = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(loader.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().ends_with(LOADED)), "it ended before");
    loader.kill().unwrap();
    loader.wait().unwrap();
    for turn in 1..=3 {
        let began = Instant::now();
        let mapped = Mapped::open(&region, MapOptions::default()).unwrap();
        let store = Pmekv::open(mapped, HostDram, Options::default()).unwrap();
        let took = began.elapsed();
        assert_eq!(store.len().unwrap(), KEY_COUNT);
        let figures = store.stats().figures;
        let entries =
            figures.iter().find(|figure| figure.name == "pmekv_log_entries").map_or(0.0, |figure| figure.value);
        println!(
            "opening {turn}: {:.2} s, {:.2} M keys/s, {entries} entries of the log",
            took.as_secs_f64(),
            KEY_COUNT as f64 / took.as_secs_f64() / 1e6
        );
    }
}
