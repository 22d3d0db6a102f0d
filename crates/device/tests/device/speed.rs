//! What commands take: the engine alone, one at a time and in groups as a device carries them out, then a device over shared memory and
//! over TCP, with one command at a time and with 32. Printed, and nothing is asserted of it: `cargo xtask device speed`.

use std::hint::black_box;
use std::time::{Duration, Instant};

use device_client::{Operation, Options, StoreIf};
use hikv::{EngineKind, Store};

use crate::support::{Bench, directory};

/// Keys of the store: more than caches hold.
const KEY_COUNT: u64 = 1 << 21;
const VALUE: [u8; 256] = [7; 256];
/// Operations of a row for the engine alone, and through a device.
const COUNT: u64 = 1 << 20;
const DEVICE_COUNT: u64 = 1 << 17;
const DEPTH: usize = 32;
/// As the device carries out runs of commands.
const GROUP_COUNT: u64 = 16;

/// Keys in an order that no cache guesses.
fn key(number: u64) -> [u8; 16] {
    let mixed = (number % KEY_COUNT).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (u128::from(mixed) << 64 | u128::from(number % KEY_COUNT)).to_be_bytes()
}

fn scattered(number: u64) -> [u8; 16] {
    key(number.wrapping_mul(0xD134_2543_DE82_EF95) >> 13)
}

#[expect(clippy::print_stdout, reason = "a table for reading")]
fn row(what: &str, count: u64, took: Duration, median: Option<Duration>) {
    let millions = count as f64 / took.as_secs_f64() / 1e6;
    let median = median.map_or_else(String::new, |median| format!(", median {:.2} us", median.as_secs_f64() * 1e6));
    println!("{what:44} {millions:6.3} M/s{median}");
}

fn measure(what: &str, count: u64, mut work: impl FnMut(u64)) {
    let began = Instant::now();
    (0..count).for_each(&mut work);
    row(what, count, began.elapsed(), None);
}

/// The same, of calls that are timed one by one.
fn measure_each(what: &str, count: u64, mut work: impl FnMut(u64)) {
    let (began, mut each) = (Instant::now(), Vec::new());
    for number in 0..count {
        let before = Instant::now();
        work(number);
        each.push(before.elapsed());
    }
    let took = began.elapsed();
    each.sort_unstable();
    row(what, count, took, each.get(each.len() / 2).copied());
}

fn alone(store: &Store) {
    measure("engine alone: put", COUNT, |number| store.put(scattered(number), VALUE).expect("it stores"));
    measure("engine alone: get", COUNT, |number| {
        store.get_with(scattered(number), |value| black_box(value.len())).expect("it reads");
    });
    let groups = COUNT / GROUP_COUNT;
    let keys = |group: u64| (0..GROUP_COUNT).map(move |number| scattered(group * GROUP_COUNT + number));
    let began = Instant::now();
    for group in 0..groups {
        let items: Vec<_> = keys(group).map(|key| (key, VALUE)).collect();
        store.multi_put_each(&items, |_, done| done.expect("it stores"));
    }
    row("engine alone: put, groups of 16", COUNT, began.elapsed(), None);
    let began = Instant::now();
    for group in 0..groups {
        let keys: Vec<_> = keys(group).collect();
        store.multi_get_with(&keys, |_, value| _ = black_box(value.map(<[u8]>::len))).expect("it reads");
    }
    row("engine alone: get, groups of 16", COUNT, began.elapsed(), None);
}

fn through(bench: &Bench, transport: &str) {
    let mut client = bench.client_with(Options::default());
    measure_each(&format!("{transport}: store, one at a time"), DEVICE_COUNT / 4, |number| {
        client.store(scattered(number), VALUE).expect("it stores");
    });
    measure_each(&format!("{transport}: retrieve, one at a time"), DEVICE_COUNT / 4, |number| {
        black_box(client.retrieve(scattered(number)).expect("it reads"));
    });
    let many = |what: &str, client: &mut device_client::Client, make: &dyn Fn(Vec<u8>) -> Operation| {
        let operations: Vec<Operation> = (0..DEVICE_COUNT).map(|number| make(scattered(number).to_vec())).collect();
        let began = Instant::now();
        for some in operations.chunks(4096) {
            black_box(client.run(some).expect("they are done"));
        }
        row(&format!("{transport}: {what}, {DEPTH} at once"), DEVICE_COUNT, began.elapsed(), None);
    };
    let mut client = bench.client_with(Options { entry_count: DEPTH as u16 + 1, ..Options::default() });
    let store = |key| Operation::Store { key, value: VALUE.to_vec(), when: StoreIf::Always };
    many("store", &mut client, &store);
    many("retrieve", &mut client, &|key| Operation::Retrieve { key });
}

#[test]
#[ignore = "a measurement"]
fn what_commands_take() {
    let dir = directory();
    let options = hikv::Options::new().engine(EngineKind::Pmekv).durability(hikv::Durability::Process);
    let store = options.open(dir.path()).expect("a store");
    (0..KEY_COUNT).for_each(|number| store.put(key(number), VALUE).expect("it stores"));
    alone(&store);
    let bench = Bench::of(dir, store, device::Config::default()).by_shm(true);
    through(&bench, "shared memory");
    through(&bench.by_shm(false), "TCP");
}
