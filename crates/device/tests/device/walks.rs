//! Lists that take more turns than one, of a host that says nothing meanwhile.

use std::time::Duration;

use device::limits;
use device_client::{Client, Options};

use crate::support::Bench;

/// More keys than a turn shows, which a command has room for.
const COUNT: u32 = limits::WALK_ITEM_COUNT_MAX as u32 + 1_000;

fn client(bench: &Bench) -> Client {
    bench.client_with(Options { timeout: Some(Duration::from_secs(10)), ..Options::default() })
}

#[test]
fn a_list_of_more_turns_than_one_goes_on_by_itself() {
    for by_shm in [false, true] {
        let bench = Bench::new().by_shm(by_shm);
        (0..COUNT).for_each(|number| bench.store.put(number.to_be_bytes(), "").expect("it stores"));
        assert_eq!(client(&bench).list("").expect("it lists").len(), COUNT as usize);
        assert_eq!(client(&bench).range("").expect("it reads").len(), COUNT as usize);
    }
}

#[test]
fn keys_that_have_no_name_hold_up_no_list() {
    for by_shm in [false, true] {
        let bench = Bench::new().by_shm(by_shm);
        let long = |number: usize| format!("{number:016} and more");
        (0..limits::WALK_SEEK_COUNT_MAX * 2).for_each(|number| bench.store.put(long(number), "").expect("it stores"));
        bench.store.put("last", "").expect("it stores");
        assert_eq!(client(&bench).list("").expect("it lists"), [b"last"]);
    }
}
