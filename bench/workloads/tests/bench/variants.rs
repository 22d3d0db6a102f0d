//! Variants of HiKV on stores: the cost of each in persists, and correct results of every workload.

use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

use bench::variants::{BlockedQueues, HashOnly, Par, Synchronous, Varied, Wal, Way};
use bench::{Bounds, Candidate, Config, Event, Records, Subject, Workload, run};
use hikv::pool::{Plan, Reading, Split};
use hikv::{Durability, Options};
use pmem::Latency;
use tempfile::TempDir;

fn options() -> Options {
    Options::new()
        .emulation(|emulation| emulation.count_persists(true))
        .durability(Durability::Process)
        .tuning(|tuning| tuning.background_threads(1))
}

fn place() -> TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory).unwrap() } else { tempfile::tempdir().unwrap() }
}

fn open(place: &TempDir, options: Options) -> Candidate {
    Candidate::new(options.open(place.path().join("store")).unwrap())
}

fn config(plan: Option<Plan>) -> Config {
    use Workload::*;
    Config {
        workloads: vec![InsertOrdered, UpdateOrdered, DeleteOrdered, Scan, YcsbE],
        records: Records { count: 2_000, key_bytes: 16, shared_bytes: 0, value_bytes: 64 },
        pass: Duration::from_millis(20),
        threads: 3,
        plan,
        keeps_order: false,
        seed: 0,
    }
}

/// Checks that no result is wrong, and that the ordered index has caught up with every write.
fn is_right(subject: &impl Subject, plan: Option<Plan>) {
    let mut row_count = 0;
    run(subject, &config(plan), &Bounds::default(), &|| false, |event| {
        if let Event::Measured(row) = event {
            assert_eq!(row.errors, 0, "{row}");
            assert_eq!(row.pool.is_some(), plan.is_some());
            row_count += 1;
        }
        ControlFlow::Continue(())
    })
    .unwrap();
    assert_eq!(row_count, 5);
    let mut count = 0;
    subject
        .scan(&[], |_, _| {
            count += 1;
            ControlFlow::Continue(())
        })
        .unwrap();
    assert_eq!(count, 2_000, "added and removed records are restored, also in the ordered index");
}

/// With backend threads of their own, and with pools.
fn is_right_in_each_way<W: Way>(way: impl Fn() -> W, options: &dyn Fn() -> Options) {
    let fixed = Plan::Fixed(Split { serving: 2, backend: 1 });
    for plan in [None, Some(Plan::Adaptive(Reading::WritesLumped)), Some(fixed)] {
        let place = place();
        is_right(&Varied::new(open(&place, options()), way()), plan);
    }
}

#[test]
fn sync_is_right_and_leaves_nothing_queued() {
    is_right_in_each_way(Synchronous::default, &|| options().background(false));
    let place = place();
    let subject = Varied::new(open(&place, options().background(false)), Synchronous);
    subject.put_in_order().unwrap();
    for number in 0..100_u8 {
        subject.put(&[number], b"value").unwrap();
        assert_eq!(subject.queued_count(), Some(0));
    }
}

#[test]
fn blocked_queues_are_right() {
    is_right_in_each_way(BlockedQueues::default, &options);
}

#[test]
fn hash_only_has_no_order() {
    let place = place();
    let subject = Varied::new(open(&place, options().ordered(false)), HashOnly);
    subject.put_in_order().unwrap();
    subject.put(b"key", b"value").unwrap();
    assert_eq!((subject.queued_count(), subject.get_owned(b"key").unwrap().as_deref()), (None, Some(&b"value"[..])));
    let refused = subject.scan(b"", |_, _| ControlFlow::Continue(()));
    assert!(matches!(refused.unwrap_err().downcast_ref(), Some(hikv::Error::NoOrder)));
}

#[test]
fn par_is_right() {
    is_right_in_each_way(|| Par::new(4, 64, 1), &|| options().ordered(false));
}

#[test]
fn wal_is_right() {
    let places: Vec<_> = (0..3).map(|_| place()).collect();
    let next = std::cell::Cell::new(0);
    let wal = || {
        let path = places[next.replace(next.get() + 1)].path().join("log");
        Wal::create(&path, Latency::default()).unwrap()
    };
    is_right_in_each_way(wal, &options);
}

#[test]
fn queues_of_any_size_are_correct() {
    for (count, bound) in [(1, 2), (7, 64), (16, 4096)] {
        let place = place();
        is_right(&open(&place, options().tuning(|tuning| tuning.order_queues(count, bound))), None);
    }
}

/// Only writers apply changes: each queue fills up to its bound, so as many changes wait as all queues hold.
#[test]
fn queues_bound_waiting_changes() {
    for (count, bound) in [(1, 2), (1, 64), (4, 64)] {
        let place = place();
        let subject = open(&place, options().background(false).tuning(|tuning| tuning.order_queues(count, bound)));
        subject.put_in_order().unwrap();
        let (mut most, capacity) = (0, (count * bound) as u64);
        for number in 0..4_000_u32 {
            subject.put(&number.to_be_bytes(), b"value").unwrap();
            most = most.max(subject.queued_count().unwrap());
        }
        assert!(most <= capacity && most > capacity * 3 / 4, "{most} waited in {count} queues of {bound}");
    }
}

/// Counts the fences of one operation, after the first one of its kind, which allocates space.
fn fences(subject: &impl Subject) -> [u64; 3] {
    let count = |operation: &dyn Fn()| {
        let before = subject.persists().unwrap().fence_count;
        operation();
        subject.persists().unwrap().fence_count - before
    };
    let put = |key: &[u8], value: &[u8]| subject.put(key, value).unwrap();
    put(b"first", b"value");
    [
        count(&|| put(b"key", b"value")),
        count(&|| put(b"key", b"other")),
        count(&|| assert!(subject.delete(b"key").unwrap())),
    ]
}

#[test]
fn log_costs_third_persist() {
    let place = place();
    let still = || options().background(false);
    assert_eq!(fences(&open(&place, still())), [2, 2, 1], "put, update, delete with ordered writes");
    let logged = self::place();
    let wal = Wal::create(&logged.path().join("log"), Latency::default()).unwrap();
    assert_eq!(fences(&Varied::new(open(&logged, still()), wal)), [3, 3, 2]);
}

#[test]
fn log_goes_round() {
    let place = place();
    let wal = Wal::create(&place.path().join("log"), Latency::default()).unwrap();
    let subject = Varied::new(open(&place, options()), wal);
    let value = vec![7; 1 << 20];
    for number in 0..20_u8 {
        subject.put(&[number], &value).unwrap();
    }
    assert!(subject.put(b"long", &vec![7; 5 << 20]).is_err(), "a record that no lane holds");
}
