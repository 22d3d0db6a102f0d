//! When keys expire, for those who want to be told (`notify-keyspace-events` with `x`).
//!
//! The store takes expired keys back without saying so. While somebody wants to know, every change of a key is followed by
//! a look at when it expires, and the first event loop wakes at the earliest of these times. Keys that were to expire before
//! anybody wanted to know are not told of, nor those beyond [`KEY_COUNT_MAX`].

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hikv::{Clock, Error, Store, Ttl};
use parking_lot::Mutex;

use crate::databases::{DATABASE_COUNT, Slot};
use crate::notify::{self, EXPIRED};
use crate::shared::Shared;
use crate::tracking;

/// Keys whose times are kept: some hundred MiB, if keys are short.
const KEY_COUNT_MAX: usize = 1 << 20;

#[derive(Default)]
pub(crate) struct Expirations {
    times: Mutex<Times>,
    /// The earliest time, in milliseconds since the Unix epoch; `u64::MAX` if there is none. It may be too early.
    next_ms: AtomicU64,
}

#[derive(Default)]
struct Times {
    by_key: HashMap<Vec<u8>, u64>,
    in_order: BTreeSet<(u64, Vec<u8>)>,
}

impl Times {
    fn set(&mut self, raw: &[u8], ms: Option<u64>) {
        if let Some(old_ms) = self.by_key.remove(raw) {
            self.in_order.remove(&(old_ms, raw.to_vec()));
        }
        if let Some(ms) = ms.filter(|_| self.by_key.len() < KEY_COUNT_MAX) {
            self.by_key.insert(raw.to_vec(), ms);
            self.in_order.insert((ms, raw.to_vec()));
        }
    }

    fn take_due(&mut self, now_ms: u64) -> Option<Vec<u8>> {
        let (ms, _) = self.in_order.first()?;
        if *ms > now_ms {
            return None;
        }
        let (_, raw) = self.in_order.pop_first()?;
        self.by_key.remove(&raw);
        Some(raw)
    }

    fn next_ms(&self) -> u64 {
        self.in_order.first().map_or(u64::MAX, |(ms, _)| *ms)
    }
}

impl Expirations {
    pub(crate) fn new() -> Expirations {
        Expirations { times: Mutex::default(), next_ms: AtomicU64::new(u64::MAX) }
    }

    /// Looks at when a key expires that was just changed; true if that is earlier than any other.
    pub(crate) fn look_at(&self, store: &Store, raw: &[u8]) -> Result<bool, Error> {
        let ms = match store.ttl(raw)? {
            Some(Ttl::Left(left)) => Some(Clock::default().now_ms().saturating_add(left.as_millis() as u64)),
            Some(Ttl::Unlimited) | None => None,
        };
        let mut times = self.times.lock();
        times.set(raw, ms);
        let next_ms = times.next_ms();
        Ok(next_ms < self.next_ms.swap(next_ms, Ordering::AcqRel))
    }

    /// Forgets all keys, which nobody wants to know of any more, or which are gone.
    pub(crate) fn forget(&self) {
        *self.times.lock() = Times::default();
        self.next_ms.store(u64::MAX, Ordering::Release);
    }

    /// Forgets the keys for which `is_gone` holds, given their names in the store.
    pub(crate) fn forget_where(&self, is_gone: impl Fn(&[u8]) -> bool) {
        let mut times = self.times.lock();
        times.by_key.retain(|raw, _| !is_gone(raw));
        times.in_order.retain(|(_, raw)| !is_gone(raw));
        self.next_ms.store(times.next_ms(), Ordering::Release);
    }

    /// How long nothing expires; none if nothing will.
    pub(crate) fn sleep_time(&self) -> Option<Duration> {
        let next_ms = self.next_ms.load(Ordering::Acquire);
        (next_ms != u64::MAX).then(|| Duration::from_millis(next_ms.saturating_sub(Clock::default().now_ms())))
    }
}

/// Tells of the keys that have expired.
pub(crate) fn tell_due(shared: &Shared) {
    let now_ms = Clock::default().now_ms();
    if shared.expirations.next_ms.load(Ordering::Acquire) > now_ms {
        return;
    }
    let mut due = Vec::new();
    {
        let mut times = shared.expirations.times.lock();
        due.extend(std::iter::from_fn(|| times.take_due(now_ms)));
        shared.expirations.next_ms.store(times.next_ms(), Ordering::Release);
    }
    for raw in due {
        // Whoever is told waits until it is durable.
        let (is_there, _) = shared.store.deferred(|store| store.contains(&raw));
        // One that is there again was put anew, and looked at then.
        if !is_there.unwrap_or(true) {
            tracking::invalidate(shared, &raw);
            tell(shared, &raw);
        }
    }
}

fn tell(shared: &Shared, raw: &[u8]) {
    let slots = (0..DATABASE_COUNT as u8).map(|db| (db, shared.databases.slot(db)));
    let found = slots.into_iter().find_map(|(db, slot): (u8, Slot)| slot.key_of(raw).map(|key| (db, key)));
    if let Some((db, key)) = found {
        notify::tell(shared, EXPIRED, "expired", db, key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_one_time() {
        let mut times = Times::default();
        times.set(b"a", Some(5));
        times.set(b"b", Some(3));
        times.set(b"a", Some(2));
        times.set(b"b", None);
        assert_eq!((times.next_ms(), times.take_due(1)), (2, None));
        assert_eq!((times.take_due(2), times.take_due(u64::MAX)), (Some(b"a".to_vec()), None));
        assert!(times.by_key.is_empty() && times.next_ms() == u64::MAX);
    }
}
