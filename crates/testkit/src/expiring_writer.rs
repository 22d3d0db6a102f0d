//! A writer of expiring keys that never stops, alongside a worker that rarely runs a step.

use std::time::Duration;

use engine::pace::FREE_COUNT;
use engine::{Clock, Engine, WantedThreads};

/// Keys that have not expired, at any time.
const LIVE_COUNT: u32 = 1_000;
/// Puts per millisecond of the clock.
const PUTS_PER_MS: u32 = 10;
const PUT_COUNT: u32 = 60_000;
/// Puts between two steps of the worker, which deletes far fewer keys per step.
const PUTS_PER_STEP: u32 = 2_000;

/// Puts between two checks of the number of keys.
const PUTS_PER_LEN: u32 = 500;

/// Puts 60,000 expiring keys, 1,000 of which are live at any time, as a server would; returns the largest number of
/// keys in the store.
///
/// # Panics
/// If the store fails.
pub fn put_expiring(store: &dyn Engine, clock: &Clock) -> u64 {
    let (life, mut len_max) = (Duration::from_millis((LIVE_COUNT / PUTS_PER_MS).into()), 0);
    for number in 0..PUT_COUNT {
        store.put_until(&number.to_be_bytes(), b"value", clock.after(life)).unwrap();
        if store.wanted_threads() != WantedThreads::None {
            store.assist_background().unwrap();
        }
        if number % PUTS_PER_MS == 0 {
            clock.advance(Duration::from_millis(1));
        }
        if number % PUTS_PER_STEP == 0 {
            store.step().unwrap();
        }
        // Not every time, because an engine may have to count.
        if number % PUTS_PER_LEN == 0 {
            len_max = len_max.max(store.len().unwrap());
        }
    }
    len_max
}

/// The bound of [`engine::pace`] for this writer: the store never holds more keys than this.
pub const EXPIRING_LEN_MAX: u64 = 4 * (LIVE_COUNT as u64 + FREE_COUNT);
