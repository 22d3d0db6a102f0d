//! Speed: the engine only, with single operations and with groups as a device executes them; a device over shared
//! memory and over TCP, with 1 command, with 32, and with 32 on each of eight queues; and hikv's server for Redis
//! clients with as many requests in flight on as many connections, by a client that discards replies. The results are
//! printed, and nothing is asserted: `cargo xtask device speed`.
//!
//! Comparisons alternate between both ways (`turns`): the share of the engine's speed, in groups of 16, that a
//! shared-memory host reaches with 32 commands in flight; and a device over TCP compared with hikv's server.

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{fs, thread};

use device_client::{Client, Operation, Options, Outcome, StoreIf};
use hikv::{EngineKind, Store};

use crate::support::{Bench, directory};

mod redis;
mod turns;

/// Number of keys in the store: more than caches hold.
const KEY_COUNT: u64 = 1 << 21;
const VALUE: [u8; 256] = [7; 256];
/// Number of operations of a row.
const COUNT: u64 = 1 << 20;
const DEVICE_COUNT: u64 = 1 << 19;
const DEPTH: usize = 32;
const QUEUE_COUNT: u64 = 8;
/// As the device groups commands.
const GROUP_COUNT: u64 = 16;
/// Returns keys in an order that no cache predicts.
fn key(number: u64) -> [u8; 16] {
    let mixed = (number % KEY_COUNT).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (u128::from(mixed) << 64 | u128::from(number % KEY_COUNT)).to_be_bytes()
}

fn scattered(number: u64) -> [u8; 16] {
    key(number.wrapping_mul(0xD134_2543_DE82_EF95) >> 13)
}

/// Returns this thread's processor time, which is more reliable than the clock on a shared machine.
fn thread_ns() -> u64 {
    ns_of("/proc/thread-self".as_ref())
}

fn ns_of(thread: &Path) -> u64 {
    let times = fs::read_to_string(thread.join("schedstat")).expect("it is Linux");
    times.split(' ').next().and_then(|ns| ns.parse().ok()).expect("a number")
}

/// Returns the processor time of the device's loops.
fn loops_ns() -> u64 {
    let threads =
        fs::read_dir("/proc/self/task").expect("it is Linux").map(|thread| thread.expect("it is there").path());
    let is_loop =
        |thread: &PathBuf| fs::read_to_string(thread.join("comm")).is_ok_and(|name| name.starts_with("hikv-device"));
    threads.filter(is_loop).map(|thread| ns_of(&thread)).sum()
}

/// Prints the speed of `work` for `count` operations, with percentiles if single ones were timed.
#[expect(clippy::print_stdout, reason = "a table for reading")]
fn measure(what: &str, count: u64, work: impl FnOnce() -> Vec<Duration>) {
    let (began, began_ns) = (Instant::now(), (thread_ns(), loops_ns()));
    let mut each = work();
    let (took, caller_ns, device_ns) = (began.elapsed(), thread_ns() - began_ns.0, loops_ns() - began_ns.1);
    each.sort_unstable();
    let millions = count as f64 / took.as_secs_f64() / 1e6;
    let median = each.get(each.len() / 2).map(|median| format!(", median {:.2} us", median.as_secs_f64() * 1e6));
    println!(
        "{what:44} {millions:6.3} M/s, {:5} ns of the caller's processor, {:5} ns of the device's{}",
        caller_ns / count,
        device_ns / count,
        median.unwrap_or_default()
    );
}

/// Times each call separately.
fn timed(count: u64, mut work: impl FnMut(u64)) -> Vec<Duration> {
    let time = |number| {
        let before = Instant::now();
        work(number);
        before.elapsed()
    };
    (0..count).map(time).collect()
}

fn alone(store: &Store) {
    measure("engine alone: put", COUNT, || {
        (0..COUNT).for_each(|number| store.put(scattered(number), VALUE).expect("it stores"));
        Vec::new()
    });
    measure("engine alone: get", COUNT, || {
        let get = |number| store.in_place().get(scattered(number), |value| black_box(value.len())).expect("it reads");
        (0..COUNT).for_each(|number| assert!(get(number).is_some()));
        Vec::new()
    });
    measure("engine alone: delete", COUNT / 4, || {
        (0..COUNT / 4).for_each(|number| assert!(store.delete(key(number)).expect("it deletes")));
        Vec::new()
    });
    let keys: Vec<_> = (0..COUNT).map(scattered).collect();
    measure("engine alone: put, groups of 16", COUNT, || {
        put_groups(store, &keys);
        Vec::new()
    });
    measure("engine alone: get, groups of 16", COUNT, || {
        get_groups(store, &keys);
        Vec::new()
    });
    restore(store);
    measure("engine alone: delete, groups of 16", COUNT / 4, || {
        for group in 0..COUNT / 4 / GROUP_COUNT {
            let keys: Vec<_> = (0..GROUP_COUNT).map(|number| key(group * GROUP_COUNT + number)).collect();
            hikv::FrontEnd::of(store).multi_delete_each(&keys, |_, done| assert!(done.expect("it deletes")));
        }
        Vec::new()
    });
    restore(store);
}

fn get_groups(store: &Store, keys: &[[u8; 16]]) {
    for keys in keys.chunks(GROUP_COUNT as usize) {
        store.in_place().multi_get(keys, |_, value| _ = black_box(value.map(<[u8]>::len))).expect("it reads");
    }
}

fn put_groups(store: &Store, keys: &[[u8; 16]]) {
    for keys in keys.chunks(GROUP_COUNT as usize) {
        let items: Vec<_> = keys.iter().map(|key| (key, &VALUE)).collect();
        hikv::FrontEnd::of(store).multi_put_each(&items, |_, done| done.expect("it stores"));
    }
}

/// Returns the duration of a function for `count` keys.
fn time_of(work: impl FnOnce(&[[u8; 16]]), from: u64, count: u64) -> Duration {
    let keys: Vec<_> = (from..from + count).map(scattered).collect();
    let began = Instant::now();
    work(&keys);
    began.elapsed()
}

/// Puts deleted keys back.
fn restore(store: &Store) {
    (0..COUNT / 4).for_each(|number| store.put(key(number), VALUE).expect("it stores"));
}

fn through(bench: &Bench, transport: &str) {
    let mut client = bench.client_with(Options::default());
    let count = DEVICE_COUNT / 16;
    measure(&format!("{transport}: store, one at a time"), count, || {
        timed(count, |number| client.store(scattered(number), VALUE).expect("it stores"))
    });
    measure(&format!("{transport}: retrieve, one at a time"), count, || {
        timed(count, |number| _ = black_box(client.retrieve(scattered(number)).expect("it reads")))
    });
    for queue_count in [1, QUEUE_COUNT] {
        many(bench, &format!("{transport}: store"), queue_count, store_of);
        many(bench, &format!("{transport}: retrieve"), queue_count, retrieve_of);
    }
}

/// Each queue is a host with a thread; a single one uses the caller's thread.
fn many(bench: &Bench, what: &str, queue_count: u64, make: fn([u8; 16]) -> Asked) {
    let mut clients = clients(bench, queue_count);
    let operations = operations(0, DEVICE_COUNT, make);
    measure(&format!("{what}, {DEPTH} at once on {queue_count}"), DEVICE_COUNT, || {
        run_on(&mut clients, &operations);
        Vec::new()
    });
}

/// Connects hosts with a queue each.
fn clients(bench: &Bench, count: u64) -> Vec<Client> {
    let options = || Options { entry_count: DEPTH as u16 + 1, ..Options::default() };
    (0..count).map(|_| bench.client_with(options())).collect()
}

type Asked = Operation<[u8; 16], &'static [u8]>;

/// Builds the operations before they are timed, because the device would be idle in that time.
fn operations(from: u64, count: u64, make: fn([u8; 16]) -> Asked) -> Vec<Asked> {
    (from..from + count).map(|number| make(scattered(number))).collect()
}

/// Runs each client's share.
fn run_on(clients: &mut [Client], operations: &[Asked]) {
    match clients {
        [client] => run_all(client, operations),
        clients => thread::scope(|scope| {
            let parts = operations.chunks(operations.len() / clients.len());
            clients.iter_mut().zip(parts).for_each(|(client, part)| drop(scope.spawn(|| run_all(client, part))));
        }),
    }
}

fn run_all(client: &mut Client, operations: &[Asked]) {
    let response = |_, outcome: Outcome<&[u8]>| match black_box(outcome) {
        Outcome::Done | Outcome::Value(_) => {}
        other => panic!("{other:?}"),
    };
    client.run_with(operations, response).expect("they are done");
}

/// Returns the duration of `count` operations.
fn time_on(clients: &mut [Client], from: u64, count: u64, make: fn([u8; 16]) -> Asked) -> Duration {
    let operations = operations(from, count, make);
    let began = Instant::now();
    run_on(clients, &operations);
    began.elapsed()
}

/// Creates a store with all keys.
fn loaded(dir: &Path) -> Store {
    let options = hikv::Options::new().engine(EngineKind::Pmekv).durability(hikv::Durability::Process);
    let store = options.open(dir).expect("a store");
    (0..KEY_COUNT).for_each(|number| store.put(key(number), VALUE).expect("it stores"));
    store
}

fn store_of(key: [u8; 16]) -> Asked {
    Operation::Store { key, value: &VALUE[..], when: StoreIf::Always }
}

fn retrieve_of(key: [u8; 16]) -> Asked {
    Operation::Retrieve { key }
}

#[test]
#[ignore = "a measurement"]
fn engine_share_of_retrieve() {
    let dir = directory();
    let store = loaded(dir.path());
    let bench = Bench::of(dir, store, device::Config::default()).by_shm(true);
    let store = &bench.store;
    let by_turns = |what, alone: fn(&Store, &[[u8; 16]]), make| {
        let mut clients = clients(&bench, 1);
        let alone: turns::Run<'_> = &mut |from, count| time_of(|keys| alone(store, keys), from, count);
        let device: turns::Run<'_> = &mut |from, count| time_on(&mut clients, from, count, make);
        turns::compare(store, what, ["engine alone", "device"], [alone, device]);
    };
    by_turns("shared memory: retrieve", get_groups, retrieve_of);
    by_turns("shared memory: store", put_groups, store_of);
    by_turns("shared memory: retrieve", get_groups, retrieve_of);
}

#[test]
#[ignore = "a measurement"]
fn server_share_of_time() {
    let dir = directory();
    let store = loaded(dir.path());
    let bench = Bench::of(dir, store, device::Config::default());
    for queue_count in [1, QUEUE_COUNT] {
        let (mut clients, mut serving) = (clients(&bench, queue_count), redis::Clients::of(&bench.store, queue_count));
        for (make, kind) in [(store_of as fn(_) -> Asked, &redis::SET), (retrieve_of, &redis::GET)] {
            let what = format!("TCP: {}, {DEPTH} at once on {queue_count}", kind.name);
            let serve: turns::Run<'_> = &mut |from, count| time_of(|keys| serving.run(kind, keys), from, count);
            let device: turns::Run<'_> = &mut |from, count| time_on(&mut clients, from, count, make);
            turns::compare(&bench.store, &what, ["hikv serve", "device"], [serve, device]);
        }
    }
}

#[test]
#[ignore = "a measurement"]
fn command_times() {
    let dir = directory();
    let store = loaded(dir.path());
    alone(&store);
    let bench = Bench::of(dir, store, device::Config::default()).by_shm(true);
    through(&bench, "shared memory");
    let bench = bench.by_shm(false);
    through(&bench, "TCP");
    redis::through(&bench.store);
}
