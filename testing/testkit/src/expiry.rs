//! Tests of expiry for every engine, without crashes.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use engine::pace::FREE_COUNT;
use engine::{Clock, Engine, Expiry, Progress, WantedThreads};

/// Keys that have not expired, at any time.
const LIVE_COUNT: u32 = 1_000;
/// Puts per millisecond of the clock.
const PUTS_PER_MS: u32 = 10;
const PUT_COUNT: u32 = 60_000;
/// Puts between two steps of the worker, which deletes far fewer keys per step.
const PUTS_PER_STEP: u32 = 2_000;

/// Puts between two checks of the number of keys.
const PUTS_PER_LEN: u32 = 500;

/// The bound of [`engine::pace`] for this writer.
const LEN_MAX: u64 = 4 * (LIVE_COUNT as u64 + FREE_COUNT);

/// Puts 60,000 expiring keys, 1,000 of which are live at any time, as a server would, alongside a worker that rarely
/// runs a step.
///
/// # Panics
/// If the store fails, or at any time has more keys than the pace of reaping allows.
pub fn expired_keys_stay_few(store: &dyn Engine, clock: &Clock) {
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
    assert!(len_max <= LEN_MAX, "{len_max} keys");
}

/// Lets one key expire, renews another and keeps a third, in a store whose `clock` is at 100 ms: each has its answers,
/// and callbacks and counts its reaping.
///
/// # Panics
/// If an answer is wrong.
pub fn keys_expire_and_are_reaped(store: &dyn Engine, clock: &Clock) {
    let reported = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&reported);
    store.on_expired(Some(Arc::new(move |key: &[u8]| noted.lock().unwrap().push(key.to_vec()))));
    store.put_until(b"short", b"1", Expiry::at_ms(150)).unwrap();
    store.put_until(b"renewed", b"2", Expiry::at_ms(150)).unwrap();
    store.put(b"for ever", b"3").unwrap();
    assert!(store.get(b"short", &mut |_, _, value| assert_eq!(value, b"1")).unwrap());
    clock.advance(Duration::from_millis(50));
    assert!(!store.get(b"short", &mut |_, _, _| {}).unwrap());
    assert_eq!((store.expiry(b"short").unwrap(), store.expiry(b"for ever").unwrap()), (None, Some(Expiry::NEVER)));
    store.put_until(b"renewed", b"4", Expiry::at_ms(1000)).unwrap();
    assert_eq!(store.len().unwrap(), 3);
    while store.step().unwrap() == Progress::More {}
    assert_eq!((store.len().unwrap(), store.stats().reaped_count), (2, 1));
    assert_eq!(*reported.lock().unwrap(), [b"renewed".to_vec(), b"short".to_vec()]);
    assert!(store.expire(b"for ever", Expiry::at_ms(2000)).unwrap() && !store.expire(b"none", Expiry::NEVER).unwrap());
    assert_eq!(store.expiry(b"for ever").unwrap(), Some(Expiry::at_ms(2000)));
    assert!(!store.delete(b"short").unwrap() && store.delete(b"renewed").unwrap());
}
