//! A large value is read piece by piece: either completely, or with an error.

use std::io::Read;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use hikv::{Options, Store};
use testkit::Stamped;

use crate::place::Placed;

const KEY: [u8; 8] = 7u64.to_le_bytes();
const FILLER_BYTES: usize = 400_000;

fn put(store: &Store, put: u64) {
    let value = Stamped { key: 7, put }.value(FILLER_BYTES);
    store.put_from(KEY, value.len() as u64, &value[..]).unwrap();
}

#[test]
fn reader_notices_replaced_or_deleted_value() {
    let placed = Placed::open(&Options::new());
    let store = &placed.store;
    let mut start = [0; 1000];
    for change in
        [&|| put(store, 2), &|| assert!(store.delete(KEY).unwrap()), &|| store.clear().unwrap()] as [&dyn Fn(); 3]
    {
        put(store, 1);
        let mut reader = store.reader(KEY).unwrap().expect("the key is there");
        reader.read_exact(&mut start).unwrap();
        store.put("another key", "another value").unwrap();
        reader.read_exact(&mut start).unwrap();
        change();
        reader.read_exact(&mut start).unwrap_err();
    }
}

/// Reads in pieces while another thread replaces the value. Returns the number of values read to their end.
fn read_while_replaced(round_count: u64) -> u64 {
    let placed = Placed::open(&Options::new());
    let (store, done) = (&placed.store, AtomicBool::new(false));
    put(store, 0);
    thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut whole_count = 0;
            while !done.load(Ordering::Relaxed) {
                let (mut value, mut reader) = (Vec::new(), store.reader(KEY).unwrap().expect("the key is there"));
                if reader.read_to_end(&mut value).is_ok() {
                    assert_eq!(Stamped::read(&value).map(|value| value.key), Some(7), "a mixture");
                    whole_count += 1;
                }
            }
            whole_count
        });
        (1..round_count).for_each(|round| put(store, round));
        done.store(true, Ordering::Relaxed);
        reader.join().unwrap()
    })
}

#[test]
fn fully_read_value_is_intact() {
    read_while_replaced(500);
}

#[test]
#[ignore = "minutes"]
fn fully_read_value_is_intact_for_long() {
    assert!(read_while_replaced(100_000) > 0);
}
