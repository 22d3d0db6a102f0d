//! Measures the first get after a kill, and the volatile memory per key. A child process fills a store and is killed;
//! this process opens the store. The test prints times and asserts nothing about them: `cargo test --release -p hikv
//! --test alone opening -- --ignored --nocapture`. `HIKV_OPENED_IN` names another memory file system than /dev/shm,
//! such as one of huge pages (`mount -t tmpfs -o huge=always`).

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;
use std::{env, fs};

use hikv::{Durability, EngineKind, Options, Store};

const KEY_COUNT: u64 = 10_000_000;
const KEYS_TOGETHER: u64 = 16;
const VALUE: [u8; 64] = [7; 64];
/// One key in this many is read, to measure the memory that reads occupy.
const READ_SHARE: u64 = 10;
/// The directory and the engine for the child process.
const LOADS_AT: &str = "HIKV_LOADS_AT";
const LOADED: &str = "loaded";
/// The directory of the stores.
const OPENED_IN: &str = "HIKV_OPENED_IN";

/// Keys in an order that no cache can predict.
fn key(number: u64) -> [u8; 16] {
    let mixed = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (u128::from(mixed) << 64 | u128::from(number)).to_be_bytes()
}

fn open(dir: &Path, engine: EngineKind) -> Store {
    Options::new().engine(engine).durability(Durability::Process).open(dir).unwrap()
}

#[expect(clippy::print_stdout, reason = "the other process reads it")]
fn load(dir: &Path) {
    let name = dir.file_name().unwrap();
    let engine = EngineKind::ALL.iter().copied().find(|engine| name == engine.name()).unwrap();
    let store = open(dir, engine);
    for first in (0..KEY_COUNT).step_by(KEYS_TOGETHER as usize) {
        let items: Vec<_> = (first..first + KEYS_TOGETHER).map(|number| (key(number), VALUE)).collect();
        store.multi_put(items.iter().copied()).unwrap();
    }
    println!("{LOADED}");
    loop {
        std::thread::park();
    }
}

/// Returns the bytes of this process's anonymous memory.
fn own_bytes() -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<f64>().unwrap() * 1024.0
}

#[test]
#[ignore = "a measurement"]
#[expect(clippy::print_stdout, reason = "a table for reading")]
fn first_get_time_after_kill() {
    if let Some(dir) = env::var_os(LOADS_AT) {
        return load(&PathBuf::from(dir));
    }
    let place = env::var_os(OPENED_IN).unwrap_or_else(|| "/dev/shm".into());
    let home = tempfile::tempdir_in(place).expect("a memory file system");
    for &engine in EngineKind::ALL {
        let dir = home.path().join(engine.name());
        let mut command = Command::new(env::current_exe().unwrap());
        command.args(["--exact", "opening::first_get_time_after_kill", "--ignored", "--nocapture"]);
        let mut loader = command.env(LOADS_AT, &dir).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(loader.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().ends_with(LOADED)), "it ended before");
        loader.kill().unwrap();
        loader.wait().unwrap();
        let (own_before, began) = (own_bytes(), Instant::now());
        let store = open(&dir, engine);
        assert_eq!(store.get(key(KEY_COUNT / 2)).unwrap().as_deref(), Some(&VALUE[..]));
        let took = began.elapsed();
        for number in (0..KEY_COUNT).step_by(READ_SHARE as usize) {
            assert!(store.contains(key(number)).unwrap());
        }
        let bytes = (own_bytes() - own_before) / KEY_COUNT as f64;
        println!("{engine}: first get after {:.1} ms; {bytes:.2} bytes of own memory a key", took.as_secs_f64() * 1e3);
        drop(store);
        fs::remove_dir_all(dir).unwrap();
    }
}
