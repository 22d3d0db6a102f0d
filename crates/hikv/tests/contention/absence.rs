//! Reads of absent keys, alongside writers that insert and delete them: undamaged stores report no damage.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use hikv::{Options, Verify};

use crate::place::Placed;

/// So few keys that lines fill up, overflow and empty again; so many that segments split.
const KEY_COUNT: u64 = 6_000;
const ROUND_COUNT: u64 = 200_000;

fn key(number: u64) -> [u8; 8] {
    number.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_le_bytes()
}

#[test]
fn no_absence_is_taken_for_damage() {
    let placed = Placed::open(&Options::new().tuning(|tuning| tuning.partition_count(1).verify_reads(Verify::Absence)));
    let (store, is_over) = (&placed.store, AtomicBool::new(false));
    thread::scope(|scope| {
        let readers = [1, 3].map(|step| {
            let is_over = &is_over;
            scope.spawn(move || {
                let (mut at, mut absent_count) = (0, 0u64);
                while !is_over.load(Ordering::Relaxed) {
                    at = (at + step) % KEY_COUNT;
                    let found = store.get(key(at)).expect("nothing is damaged");
                    absent_count += u64::from(found.is_none());
                    assert!(found.is_none_or(|value| value == key(at)));
                }
                absent_count
            })
        });
        let mut random = fastrand::Rng::with_seed(7);
        for round in 0..ROUND_COUNT {
            let number = random.u64(0..KEY_COUNT.min(round + 1));
            match random.bool() {
                true => store.put(key(number), key(number)).expect("a put"),
                false => _ = store.delete(key(number)).expect("a removal"),
            }
        }
        is_over.store(true, Ordering::Relaxed);
        assert!(readers.into_iter().all(|reader| reader.join().expect("a reader") > 0));
    });
    placed.assert_sound();
}
