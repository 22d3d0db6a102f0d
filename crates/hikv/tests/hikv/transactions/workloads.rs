//! Threads whose transactions would contradict each other if the reads of one of them did not hold until its commit.
//! Each workload also runs with reads that are not tracked, and must then notice the contradiction.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use hikv::{Decision, Error, Item, Store, Transaction, Value, WriteBatch};
use testkit::Extent;

use super::{has_order, ok, stores};

const THREAD_COUNT: u64 = 4;

/// How bodies read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Reads {
    Tracked,
    /// The broken variant.
    Untracked,
}

use Reads::{Tracked, Untracked};

impl Reads {
    fn get(self, tx: &Transaction<'_>, key: &str) -> Result<Option<Value>, Error> {
        if self == Tracked { tx.get(key) } else { tx.get_untracked(key) }
    }

    fn number(self, tx: &Transaction<'_>, key: &str) -> Result<u64, Error> {
        Ok(self.get(tx, key)?.map_or(0, |value| number(&value)))
    }

    /// Returns the items whose keys begin with `prefix`, at most `count`.
    fn items(self, store: &Store, tx: &Transaction<'_>, prefix: &str, count: usize) -> Result<Vec<Item>, Error> {
        match self {
            Tracked => tx.prefix(prefix)?.take(count).collect(),
            Untracked => store.ordered()?.prefix(prefix)?.take(count).collect(),
        }
    }
}

fn number(value: &[u8]) -> u64 {
    str::from_utf8(value).unwrap().parse().unwrap()
}

/// Runs `work` in all threads at once, with the thread's number and `round_count` rounds each.
fn run(round_count: u64, work: impl Fn(u64, u64) + Sync) {
    let start = Barrier::new(THREAD_COUNT as usize);
    thread::scope(|scope| {
        for thread in 0..THREAD_COUNT {
            let (start, work) = (&start, &work);
            scope.spawn(move || {
                start.wait();
                (0..round_count).for_each(|round| work(thread, round));
            });
        }
    });
}

/// Runs a workload, which returns whether its results contradict each other, on every engine and storage. Its broken
/// variant must be caught on one of them.
fn judge(needs_order: bool, contradicts: impl Fn(&Store, Reads, u64) -> bool) {
    let round_count = Extent::pick(100, 400);
    let mut is_caught = false;
    for (dir, store) in stores().filter(|(_, store)| !needs_order || has_order(store)) {
        assert!(!contradicts(&store, Tracked, round_count), "{:?} {}", store.stats().engine, dir.path().display());
        store.clear().unwrap();
        is_caught = is_caught || contradicts(&store, Untracked, round_count * 10);
    }
    assert!(is_caught, "the workload does not notice untracked reads");
}

#[test]
fn no_update_is_lost() {
    judge(false, |store, reads, round_count| {
        run(round_count, |_, _| {
            store.transact(|tx| tx.put("count", (reads.number(tx, "count")? + 1).to_string())).unwrap();
        });
        number(&store.get("count").unwrap().unwrap()) != THREAD_COUNT * round_count
    });
}

/// Of two doctors, one is always on call.
#[test]
fn writes_do_not_skew() {
    judge(false, |store, reads, round_count| {
        let is_wrong = AtomicBool::new(false);
        store.multi_put([("ann", "1"), ("bob", "1")]).unwrap();
        run(round_count, |thread, _| {
            let (own, other) = if thread % 2 == 0 { ("ann", "bob") } else { ("bob", "ann") };
            let left = store.transact(|tx| {
                let on_call = reads.number(tx, own)? + reads.number(tx, other)?;
                is_wrong.fetch_or(reads == Untracked && on_call == 0, Ordering::Relaxed);
                tx.put(own, if on_call == 2 { "0" } else { "1" })?;
                ok(on_call)
            });
            is_wrong.fetch_or(left.unwrap() == 0, Ordering::Relaxed);
        });
        is_wrong.into_inner()
    });
}

/// Two keys are always equal, also for bodies that only read.
#[test]
fn reads_do_not_skew() {
    judge(false, |store, reads, round_count| {
        let is_wrong = AtomicBool::new(false);
        run(round_count, |thread, round| {
            if thread == 0 {
                let value = round.to_string();
                store.write(WriteBatch::new().put("one", &value).put("two", &value)).unwrap();
                return;
            }
            let pair = store.transact(|tx| ok((reads.get(tx, "one")?, reads.get(tx, "two")?)));
            let (one, two) = pair.unwrap();
            is_wrong.fetch_or(one != two, Ordering::Relaxed);
        });
        is_wrong.into_inner()
    });
}

/// Each slot is booked once, although its range is empty before.
#[test]
fn no_phantom_is_inserted() {
    judge(true, |store, reads, round_count| {
        let booked_count = AtomicU64::new(0);
        run(round_count, |thread, round| {
            let slot = format!("slot {round:06}/");
            let is_booked = store.transact(|tx| {
                let is_free = reads.items(store, tx, &slot, 1)?.is_empty();
                if is_free {
                    tx.put(format!("{slot}{thread}"), "booked")?;
                }
                ok(is_free)
            });
            booked_count.fetch_add(u64::from(is_booked.unwrap()), Ordering::Relaxed);
        });
        booked_count.into_inner() != round_count
    });
}

/// A stored count is that of the items, which threads add and delete.
#[test]
fn no_phantom_is_deleted() {
    judge(true, |store, reads, round_count| {
        let is_wrong = AtomicBool::new(false);
        run(round_count / 4, |thread, round| {
            let key = format!("item {thread}/{}", round % 3);
            let agrees = store.transact(|tx| {
                let count = reads.items(store, tx, "item ", usize::MAX)?.len() as u64;
                let agrees = reads.number(tx, "count")? == count;
                let count = match reads.get(tx, &key)? {
                    Some(_) => tx.delete(&key).map(|()| count.saturating_sub(1))?,
                    None => tx.put(&key, "here").map(|()| count + 1)?,
                };
                tx.put("count", count.to_string())?;
                ok(agrees)
            });
            is_wrong.fetch_or(!agrees.unwrap(), Ordering::Relaxed);
        });
        is_wrong.into_inner()
    });
}

/// Transfers do not change the sum of all accounts, which one thread reads as a range.
#[test]
fn money_stays() {
    const ACCOUNT_COUNT: u64 = 100;
    judge(true, |store, reads, round_count| {
        let account = |number: u64| format!("account {:03}", number % ACCOUNT_COUNT);
        store.multi_put((0..ACCOUNT_COUNT).map(|number| (account(number), "1000"))).unwrap();
        let is_wrong = AtomicBool::new(false);
        run(round_count, |thread, round| {
            if thread > 0 {
                let (from, to) = (account(thread * 31 + round * 7), account(thread + round * 13 + 1));
                return store
                    .transact(|tx| {
                        let amount = reads.number(tx, &from)?.min(10);
                        tx.update(&from, |value| put(number(value.unwrap()) - amount))?;
                        tx.update(&to, |value| put(number(value.unwrap()) + amount))?;
                        ok(())
                    })
                    .unwrap();
            }
            let total = store.transact(|tx| {
                let items = reads.items(store, tx, "account ", usize::MAX)?;
                ok(items.iter().map(|(_, value)| number(value)).sum::<u64>())
            });
            is_wrong.fetch_or(total.unwrap() != ACCOUNT_COUNT * 1000, Ordering::Relaxed);
        });
        is_wrong.into_inner()
    });
}

fn put(number: u64) -> Decision<'static> {
    Decision::Put(number.to_string().into_bytes().into())
}

/// One counter is changed by an update, a batch with a condition, and a transaction.
#[test]
fn all_kinds_of_writes_agree() {
    judge(false, |store, reads, round_count| {
        run(round_count, |thread, _| match thread {
            0 => _ = store.increment("count", 1).unwrap(),
            1 => loop {
                let mut batch = WriteBatch::new();
                match store.get_item("count").unwrap() {
                    Some(item) => {
                        let next = number(&item.value) + 1;
                        batch.expect_version("count", item.version).put("count", next.to_string())
                    }
                    None => batch.expect_absent("count").put("count", "1"),
                };
                match store.write(&batch) {
                    Err(Error::ConditionFailed { .. }) => {}
                    written => break written.unwrap(),
                }
            },
            _ => store.transact(|tx| tx.put("count", (reads.number(tx, "count")? + 1).to_string())).unwrap(),
        });
        number(&store.get("count").unwrap().unwrap()) != THREAD_COUNT * round_count
    });
}

/// Every job of a queue is done once, by consumers of its first item beside producers.
#[test]
fn jobs_are_done_once() {
    judge(true, |store, reads, round_count| {
        let done_count = AtomicU64::new(0);
        run(round_count, |thread, round| {
            if thread < 2 {
                return store.put(format!("job {:06}", round * 2 + thread), "to do").unwrap();
            }
            loop {
                let job = store.transact(|tx| {
                    let Some((key, _)) = reads.items(store, tx, "job ", 1)?.pop() else { return ok(None) };
                    tx.delete(&key)?;
                    tx.put([b"done by ", key.as_slice()].concat(), thread.to_string())?;
                    ok(Some(key))
                });
                if job.unwrap().is_some() {
                    done_count.fetch_add(1, Ordering::Relaxed);
                    return;
                }
                thread::yield_now();
            }
        });
        let done = store.ordered().unwrap().prefix("done by ").unwrap().count() as u64;
        (done, done_count.into_inner()) != (2 * round_count, 2 * round_count)
    });
}
