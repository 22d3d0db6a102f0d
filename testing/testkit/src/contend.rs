//! Threads that work on the same keys of one store concurrently.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::{Bound, ControlFlow};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use fastrand::Rng;

use crate::history::{Call, Clock, History, Recorder};
use crate::linearize::Anomaly;
use crate::stamped::Stamped;
use crate::subject::{Direction, Failure, Operations};

/// The parameters of a contention test.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Contention {
    /// The number of threads.
    pub thread_count: u64,
    /// The number of calls of each thread.
    pub call_count: u64,
    /// The number of keys, all equally likely.
    pub key_count: u64,
    /// Makes some calls swap the value that the thread last saw.
    pub swaps: bool,
    /// Makes some calls scan.
    pub scans: bool,
    /// One call in this many clears the store; 0 for never.
    pub clear_every: u64,
    /// The seed of the threads' random choices.
    pub seed: u64,
}

impl Default for Contention {
    /// Three threads on three keys, without scans.
    fn default() -> Contention {
        Contention {
            thread_count: 3,
            call_count: 400,
            key_count: 3,
            swaps: true,
            scans: false,
            clear_every: 150,
            seed: 1,
        }
    }
}

/// A wrong behaviour of the store.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Disorder {
    /// A call failed.
    Refused(Failure),
    /// A key had a torn value, which no thread put.
    Torn {
        /// The number of the key.
        key: u64,
    },
    /// A key had another key's value.
    Foreign {
        /// The number of the key.
        key: u64,
        /// The value's origin.
        value: Stamped,
    },
    /// A scan showed this key twice, or after a greater one.
    Unordered {
        /// The number of the key.
        key: u64,
    },
    /// Answers that no order of the calls explains.
    Anomaly(Anomaly),
}

impl fmt::Display for Disorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Disorder::Refused(failure) => write!(f, "a call failed: {failure}"),
            Disorder::Torn { key } => write!(f, "key {key} had a value that no thread put"),
            Disorder::Foreign { key, value } => write!(f, "key {key} had the value of key {}", value.key),
            Disorder::Unordered { key } => write!(f, "a scan showed key {key} out of order"),
            Disorder::Anomaly(anomaly) => anomaly.fmt(f),
        }
    }
}

impl std::error::Error for Disorder {}

/// The number of keys that a multi-key call reads or deletes.
const BATCH_COUNT: usize = 5;
/// Filler bytes of values, each with the number of puts in a thousand that have at most as many: within a cache line, a
/// few lines, a page, an extent.
const FILLER_LENS_BYTES: [(usize, u32); 5] = [(0, 400), (30, 700), (250, 950), (4_000, 998), (300_000, 1000)];

/// Lets threads work on a store that is empty at first, and judges their history. Returns the number of events judged.
///
/// # Errors
/// The store's first wrong behaviour.
pub fn contend<S: Operations + Sync>(store: &S, contention: &Contention) -> Result<u64, Disorder> {
    let (clock, put_count) = (Clock::default(), AtomicU64::new(0));
    let history: Result<History, Disorder> = thread::scope(|scope| {
        let worker = |thread| {
            let rng = Rng::with_seed(contention.seed << 8 | thread);
            Worker { store, contention, put_count: &put_count, rng, recorder: Recorder::new(&clock), seen: None }
        };
        let threads: Vec<_> = (0..contention.thread_count).map(|i| scope.spawn(move || worker(i).run())).collect();
        threads.into_iter().map(|thread| thread.join().expect("the store does not panic")).collect()
    });
    history?.judge().map_err(Disorder::Anomaly)
}

struct Worker<'a, S> {
    store: &'a S,
    contention: &'a Contention,
    /// Numbers the puts of all threads.
    put_count: &'a AtomicU64,
    rng: Rng,
    recorder: Recorder<'a>,
    /// The key that this thread read last, and its value.
    seen: Option<(u64, Option<Vec<u8>>)>,
}

impl<'a, S: Operations> Worker<'a, S> {
    fn run(mut self) -> Result<Recorder<'a>, Disorder> {
        for _ in 0..self.contention.call_count {
            self.call()?;
        }
        Ok(self.recorder)
    }

    fn call(&mut self) -> Result<(), Disorder> {
        let Contention { key_count, clear_every, .. } = *self.contention;
        let key = self.rng.u64(..key_count);
        if clear_every > 0 && self.rng.u64(..clear_every) == 0 {
            return self.clear();
        }
        match self.rng.u8(..100) {
            0..20 if self.contention.swaps => self.swap(),
            0..35 => self.put(key),
            35..45 => self.delete(key),
            45..50 => self.multi_delete(),
            50..60 => self.multi_get(),
            60..70 if self.contention.scans => self.scan(key),
            _ => self.get(key),
        }
    }

    fn new_value(&mut self, key: u64) -> (u64, Vec<u8>) {
        let put = self.put_count.fetch_add(1, Ordering::Relaxed);
        let drawn = self.rng.u32(..1000);
        let (filler_bytes, _) =
            FILLER_LENS_BYTES.into_iter().find(|&(_, per_mille)| drawn < per_mille).expect("all are");
        (put, Stamped { key, put }.value(filler_bytes))
    }

    fn put(&mut self, key: u64) -> Result<(), Disorder> {
        let ((put, value), store) = (self.new_value(key), self.store);
        self.recorder.record(|| {
            store.put(&key_bytes(key), &value).map_err(Disorder::Refused)?;
            Ok([(key, Call::Put(put))])
        })
    }

    fn delete(&mut self, key: u64) -> Result<(), Disorder> {
        let store = self.store;
        self.recorder.record(|| {
            let was_there = store.delete(&key_bytes(key)).map_err(Disorder::Refused)?;
            Ok([(key, Call::Delete(was_there))])
        })
    }

    /// Deletes distinct keys, so that each delete is a separate event.
    fn multi_delete(&mut self) -> Result<(), Disorder> {
        let numbers: BTreeSet<u64> = (0..BATCH_COUNT).map(|_| self.rng.u64(..self.contention.key_count)).collect();
        let keys: Vec<_> = numbers.iter().map(|number| key_bytes(*number)).collect();
        let store = self.store;
        self.recorder.record(|| {
            let keys: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
            let were_there = store.multi_delete(&keys).map_err(Disorder::Refused)?;
            Ok(numbers.into_iter().zip(were_there).map(|(key, was_there)| (key, Call::Delete(was_there))))
        })
    }

    fn get(&mut self, key: u64) -> Result<(), Disorder> {
        let (store, seen) = (self.store, &mut self.seen);
        self.recorder.record(|| {
            let value = store.get(&key_bytes(key)).map_err(Disorder::Refused)?;
            *seen = Some((key, value.clone()));
            Ok([(key, Call::Get(put_of(key, value)?))])
        })
    }

    /// Puts or deletes, if the key still holds the value that this thread read last.
    fn swap(&mut self) -> Result<(), Disorder> {
        let Some((key, seen)) = self.seen.take() else { return Ok(()) };
        let (new, store) = (self.rng.bool().then(|| self.new_value(key)), self.store);
        self.recorder.record(|| {
            let value = new.as_ref().map(|(_, value)| &value[..]);
            let swapped = store.compare_and_swap(&key_bytes(key), seen.as_deref(), value).map_err(Disorder::Refused)?;
            Ok([(key, Call::Swap(put_of(key, seen)?, new.map(|(put, _)| put), swapped))])
        })
    }

    fn multi_get(&mut self) -> Result<(), Disorder> {
        let numbers: [u64; BATCH_COUNT] = std::array::from_fn(|_| self.rng.u64(..self.contention.key_count));
        let keys = numbers.map(key_bytes);
        let store = self.store;
        self.recorder.record(|| {
            let values = store.multi_get(&keys.each_ref().map(|key| &key[..])).map_err(Disorder::Refused)?;
            let reads = numbers.into_iter().zip(values);
            reads.map(|(key, value)| Ok((key, Call::Get(put_of(key, value)?)))).collect::<Result<Vec<_>, _>>()
        })
    }

    /// Scans a few adjacent keys. Each of them counts as read while the scan runs, whether it is shown or not.
    fn scan(&mut self, first: u64) -> Result<(), Disorder> {
        let scan = Scan { first, end: (first + BATCH_COUNT as u64).min(self.contention.key_count) };
        let (store, is_backwards) = (self.store, self.rng.bool());
        self.recorder.record(|| scan.run(store, is_backwards))
    }

    fn clear(&mut self) -> Result<(), Disorder> {
        let (store, key_count) = (self.store, self.contention.key_count);
        self.recorder.record(|| {
            store.clear().map_err(Disorder::Refused)?;
            Ok((0..key_count).map(|key| (key, Call::Clear)))
        })
    }
}

/// A scan of the keys from `first` up to, and not including, `end`.
struct Scan {
    first: u64,
    end: u64,
}

impl Scan {
    /// Returns the reads of the scan; none if the store keeps no order.
    fn run<S: Operations>(&self, store: &S, is_backwards: bool) -> Result<Vec<(u64, Call)>, Disorder> {
        let (from, direction) = match is_backwards {
            true => (key_bytes(self.end - 1), Direction::Backward),
            false => (key_bytes(self.first), Direction::Forward),
        };
        let mut shown = Vec::new();
        let is_ordered = store.scan(Bound::Included(&from), direction, &mut |key, value| {
            let key = u64::from_be_bytes(key.try_into().expect("the keys of a history have eight bytes"));
            if !(self.first..self.end).contains(&key) {
                return ControlFlow::Break(());
            }
            shown.push((key, value.to_vec()));
            ControlFlow::Continue(())
        });
        if is_backwards {
            shown.reverse();
        }
        if is_ordered.map_err(Disorder::Refused)? { self.reads(shown) } else { Ok(Vec::new()) }
    }

    fn reads(&self, shown: Vec<(u64, Vec<u8>)>) -> Result<Vec<(u64, Call)>, Disorder> {
        if let Some(pair) = shown.windows(2).find(|pair| pair[0].0 >= pair[1].0) {
            return Err(Disorder::Unordered { key: pair[1].0 });
        }
        let mut shown: BTreeMap<u64, Vec<u8>> = shown.into_iter().collect();
        (self.first..self.end).map(|key| Ok((key, Call::Get(put_of(key, shown.remove(&key))?)))).collect()
    }
}

fn key_bytes(key: u64) -> [u8; 8] {
    key.to_be_bytes()
}

/// Returns the number of the put that a key's value comes from.
fn put_of(key: u64, value: Option<Vec<u8>>) -> Result<Option<u64>, Disorder> {
    let Some(value) = value else { return Ok(None) };
    let value = Stamped::read(&value).ok_or(Disorder::Torn { key })?;
    if value.key == key { Ok(Some(value.put)) } else { Err(Disorder::Foreign { key, value }) }
}
