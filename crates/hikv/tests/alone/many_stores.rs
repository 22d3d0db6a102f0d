//! Thousands of stores in one process, and the addresses that they reserve.

use hikv::{Durability, Options, Store};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::alone;

/// Too many for a process that reserves 1 TiB of addresses for each.
const STORE_COUNT: usize = 2_000;
/// A lock, a region, a directory and some more.
const FILES_EACH: u64 = 6;

#[test]
fn process_opens_thousands_of_stores() {
    let _alone = alone();
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(STORE_COUNT as u64 * FILES_EACH), ..limit }).unwrap();
    let place = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    let options = Options::new().background(false).ordered(false).durability(Durability::Process);
    options.open(place.path()).unwrap().put("key", "value").unwrap();
    let reading = options.read_only(true);
    let open = |number| reading.open(place.path()).unwrap_or_else(|error| panic!("store {number}: {error}"));
    let stores: Vec<Store> = (0..STORE_COUNT).map(open).collect();
    assert!(stores.iter().all(|store| store.get("key").unwrap().as_deref() == Some(&b"value"[..])));
    drop(stores);
    setrlimit(Resource::Nofile, limit).unwrap();
}
