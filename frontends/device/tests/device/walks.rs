//! Lists of several turns, for a host that sends nothing in between.

use std::time::Duration;

use device::{Config, limits};
use device_client::{Client, Options};
use nvme::{Keys, Kv};

use crate::support::{Bench, key};

/// More keys than a turn visits, which fit in the command's buffer.
const COUNT: u32 = limits::WALK_ITEM_COUNT_MAX as u32 + 1_000;

fn client(bench: &Bench) -> Client {
    bench.client_with(Options { timeout: Some(Duration::from_secs(10)), ..Options::default() })
}

#[test]
fn long_list_continues_over_turns() {
    for by_shm in [false, true] {
        let bench = Bench::new().by_shm(by_shm);
        (0..COUNT).for_each(|number| bench.store.put(number.to_be_bytes(), "").expect("it stores"));
        assert_eq!(client(&bench).list("").expect("it lists").len(), COUNT as usize);
        assert_eq!(client(&bench).range("").expect("it reads").len(), COUNT as usize);
    }
}

#[test]
fn unnamed_keys_do_not_stop_lists() {
    for by_shm in [false, true] {
        let bench = Bench::new().by_shm(by_shm);
        let long = |number: usize| format!("{number:016} and more");
        (0..limits::WALK_SEEK_COUNT_MAX * 2).for_each(|number| bench.store.put(long(number), "").expect("it stores"));
        bench.store.put("last", "").expect("it stores");
        assert_eq!(client(&bench).list("").expect("it lists"), [b"last"]);
    }
}

/// A list takes several turns of the only loop, and another host is served in between: a key that is stored then is in
/// the list. The poller reports no data of a shared-memory host.
#[test]
fn other_hosts_are_served_during_a_list() {
    const TURN_COUNT: usize = 400;
    for by_shm in [false, true] {
        let config = Config { thread_count: 1, ..Config::default() };
        let bench = Bench::with(config, hikv::Options::new()).by_shm(by_shm);
        let long = |number: usize| format!("{number:016} and more");
        let count = limits::WALK_SEEK_COUNT_MAX * TURN_COUNT;
        (0..count).for_each(|number| bench.store.put(long(number), "").expect("it stores"));
        let (controller, mut other) = (bench.controller(), client(&bench));
        let mut queue = controller.queue(1, 8).expect("it connects");
        other.exists("last").expect("it answers");
        let list = queue.submit(Kv::List { from: key(""), buffer_bytes: 100 }.command(0, 1), &[], 100);
        queue.wire().send().expect("it is sent");
        (0..4).for_each(|_| assert!(!other.exists("last").expect("it answers")));
        bench.store.put("last", "").expect("it stores");
        let listed = queue.complete_one(list).expect("it is completed").data;
        assert_eq!(Keys::new(&listed).collect::<Vec<_>>(), [b"last"], "others waited for its end; by memory: {by_shm}");
    }
}
