//! Fences and lines per operation: an insert, an update and a delete each have one fence, and one line in addition to
//! the record.

use std::ops::{Bound, ControlFlow};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use engine::prelude::*;
use engine::{BatchOp, Direction, ScanCursor};
use engine_pmekv::{Options, Pmekv};
use items::layout::HEADER_BYTES;
use pmem::{Counted, Counts, LINE_BYTES, Medium, Offset, Probe, Probed, Span};
use pmem_os::HostDram;
use pmem_sim::{Model, Sim, StepKind};

use crate::subject::{OnSim, PARAMETERS};

type Store = Pmekv<Counted<Sim>, HostDram>;

const VALUE_BYTES: usize = 256;
/// For keys of 16 bytes: slots of this length begin at any multiple of 16, so their records span five or six lines.
const RECORD_BYTES: u64 = (HEADER_BYTES + 16 + VALUE_BYTES) as u64;

fn key(number: u64) -> [u8; 16] {
    u128::from(number).to_be_bytes()
}

/// A store whose lanes have segments, and whose records have a chunk.
fn warm() -> Store {
    let store =
        Pmekv::format(Counted::new(Sim::new(0, Model::Line)), HostDram, &PARAMETERS, Options::default()).unwrap();
    (0..16).for_each(|number| store.put(&key(number), &[1; VALUE_BYTES]).unwrap());
    store
}

fn cost(store: &Store, work: impl FnOnce()) -> Counts {
    let before = store.medium().counts().expect("this medium counts");
    work();
    let after = store.medium().counts().expect("this medium counts");
    Counts {
        flushed_line_count: after.flushed_line_count - before.flushed_line_count,
        fence_count: after.fence_count - before.fence_count,
        streamed_bytes: after.streamed_bytes - before.streamed_bytes,
    }
}

fn is_a_record_and_a_line(cost: Counts) {
    assert_eq!((cost.fence_count, cost.streamed_bytes), (1, RECORD_BYTES + LINE_BYTES));
    assert!((6..=7).contains(&cost.flushed_line_count), "{cost:?}");
}

#[test]
fn inserts_updates_and_deletes_have_one_fence() {
    let store = warm();
    for number in 16..40 {
        is_a_record_and_a_line(cost(&store, || store.put(&key(number), &[2; VALUE_BYTES]).unwrap()));
    }
    for round in 0..40 {
        is_a_record_and_a_line(cost(&store, || store.put(&key(round % 8), &[round as u8; VALUE_BYTES]).unwrap()));
    }
    let deleted = Counts { flushed_line_count: 1, fence_count: 1, streamed_bytes: LINE_BYTES };
    (0..40).for_each(|number| assert_eq!(cost(&store, || assert!(store.delete(&key(number)).unwrap())), deleted));
}

#[test]
fn reads_and_what_changes_nothing_cost_nothing() {
    let store = warm();
    let read = cost(&store, || assert!(store.get(&key(3), &mut |_, _, _| {}).unwrap()));
    let missed = cost(&store, || assert!(!store.delete(&key(99)).unwrap()));
    let none = cost(&store, || store.write_batch(&[BatchOp::Delete { key: &key(99) }]).unwrap());
    assert_eq!([read, missed, none], [Counts::default(); 3]);
}

/// Sixteen puts have one fence; each has its own lines.
#[test]
fn puts_of_several_have_one_fence() {
    let store = warm();
    let put = |keys: &[[u8; 16]]| {
        let items: Vec<_> = keys.iter().map(|key| (&key[..], &[4; VALUE_BYTES][..])).collect();
        let mut outcomes = Vec::new();
        store.multi_put_each(&items, &mut |number, done| outcomes.push((number, done.is_ok())));
        outcomes.sort_unstable();
        assert!(outcomes.into_iter().eq((0..items.len()).map(|number| (number, true))));
    };
    for first in [0, 16, 8] {
        let keys: Vec<_> = (first..first + 16).map(key).collect();
        let cost = cost(&store, || put(&keys));
        assert_eq!((cost.fence_count, cost.streamed_bytes), (1, 16 * (RECORD_BYTES + LINE_BYTES)));
        assert!((16 * 6..=16 * 7).contains(&cost.flushed_line_count), "{cost:?}");
    }
    // A repeated key is put again, after the first put.
    let keys = [key(1), key(2), key(1)];
    assert_eq!(cost(&store, || put(&keys)).fence_count, 2);
}

/// Sixteen deletes have one fence, and a line each; none if no key is present.
#[test]
fn deletes_of_several_have_one_fence() {
    let store = warm();
    let delete = |numbers: std::ops::Range<u64>| {
        let keys: Vec<_> = numbers.map(key).collect();
        let slices: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
        let mut outcomes = Vec::new();
        store.multi_delete_each(&slices, &mut |number, done| outcomes.push((number, done.unwrap())));
        outcomes.sort_unstable();
        outcomes.into_iter().map(|(_, was_there)| was_there).collect::<Vec<_>>()
    };
    let some = cost(&store, || assert_eq!(delete(8..24), [[true; 8], [false; 8]].concat()));
    assert_eq!(some, Counts { flushed_line_count: 8, fence_count: 1, streamed_bytes: 8 * LINE_BYTES });
    assert_eq!(cost(&store, || assert_eq!(delete(8..24), [false; 16])), Counts::default());
}

/// An access to a line: a prefetch or a read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Done {
    AskedFor(Offset),
    Read(Span),
}

#[derive(Default)]
struct Order(Mutex<Vec<Done>>);

impl Probe for Order {
    fn asked_for(&self, at: Offset) {
        self.0.lock().unwrap().push(Done::AskedFor(at.line()));
    }

    fn read(&self, span: Span) {
        self.0.lock().unwrap().push(Done::Read(span));
    }
}

/// A store that records the accesses to its lines.
struct Noted(Pmekv<Probed<Sim, Order>, HostDram>);

impl Noted {
    fn new() -> Noted {
        let sim = Probed::with_probe(Sim::new(0, Model::Line), Order::default());
        Noted(Pmekv::format(sim, HostDram, &PARAMETERS, Options::default()).unwrap())
    }

    /// Returns the accesses of `work`, in order.
    fn done(&self, work: impl FnOnce(&dyn Engine)) -> Vec<Done> {
        let Order(done) = self.0.medium().probe();
        done.lock().unwrap().clear();
        work(&self.0);
        std::mem::take(&mut *done.lock().unwrap())
    }
}

/// Returns the number of lines that are prefetched before the first of them is read.
fn asked_first(done: &[Done]) -> usize {
    let first_read = done.iter().position(|done| matches!(done, Done::Read(_))).expect("records are read");
    let (asked, rest) = done.split_at(first_read);
    for done in rest {
        if let Done::Read(span) = done {
            assert!(
                asked.contains(&Done::AskedFor(span.start.line())),
                "a line was read that was not prefetched: {done:?}"
            );
        }
    }
    asked.len()
}

/// Sixteen gets prefetch all lines of records that they read before they read the first. Sixteen puts, or deletes,
/// prefetch the first line of each replaced record.
#[test]
fn multi_get_prefetches_before_reading() {
    let noted = Noted::new();
    // The keys differ in their first bytes, so each is compared with one record.
    let keys: Vec<_> = (0..16).map(|number| [number; 16]).collect();
    let items: Vec<(&[u8], &[u8])> = keys.iter().map(|key| (&key[..], &[1; VALUE_BYTES][..])).collect();
    noted.0.multi_put(&items).unwrap();
    let keys: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
    let gets = noted.done(|store| store.multi_get(&keys, &mut |_, value| assert!(value.is_some())).unwrap());
    assert!((16 * 5..=16 * 6).contains(&asked_first(&gets)), "{gets:?}");
    assert_eq!(asked_first(&noted.done(|store| store.multi_put(&items).unwrap())), 16);
    let deletes = noted.done(|store| store.multi_delete_each(&keys, &mut |_, done| assert!(done.unwrap())));
    assert_eq!(asked_first(&deletes), 16);
}

/// A scan prefetches each record eight positions before reading it, and no line that it does not read.
#[test]
fn scan_asks_for_records_ahead() {
    const AHEAD_COUNT: usize = 8;
    let noted = Noted::new();
    // No key is like the start of the scan, or it would be compared with it.
    (1..=30).for_each(|number| noted.0.put(&[number; 16], &[1; VALUE_BYTES]).unwrap());
    let mut cursor = ScanCursor::new(Bound::Unbounded, Direction::Forward);
    let done = noted.done(|store| {
        let mut each = |_: &[u8], _: &[u8]| ControlFlow::Continue(());
        assert!(!store.ordered().unwrap().scan(&mut cursor, &mut each).unwrap());
    });
    let start = |done: &Done| if let Done::Read(span) = done { Some(span.start) } else { None };
    let mut records: Vec<Offset> = done.iter().filter_map(start).collect();
    records.dedup();
    assert_eq!(records.len(), 30);
    for (number, record) in records.iter().enumerate() {
        let first_read = done.iter().position(|done| start(done) == Some(*record)).expect("it is read");
        let later = records[(number + AHEAD_COUNT).min(29)].line();
        assert!(done[..first_read].contains(&Done::AskedFor(later)), "record {number}: {later:?} was not prefetched");
    }
    let asked_count = done.iter().filter(|done| matches!(done, Done::AskedFor(_))).count();
    assert!((30 * 5..=30 * 6).contains(&asked_count), "{asked_count} lines");
}

/// A batch of any number of keys orders its entries once, and then commits its end.
#[test]
fn batch_has_two_fences() {
    let store = warm();
    let keys: Vec<_> = (100..150).map(key).collect();
    let ops: Vec<_> = keys.iter().map(|key| BatchOp::Put { key, value: &[3; VALUE_BYTES] }).collect();
    let cost = cost(&store, || store.write_batch(&ops).unwrap());
    assert_eq!((cost.fence_count, cost.streamed_bytes), (2, 50 * (RECORD_BYTES + LINE_BYTES) + LINE_BYTES));
}

/// At most one fence more, for the header of a segment, which has 1,022 entries.
#[test]
fn segment_costs_fence_more() {
    let store = warm();
    let fences = cost(&store, || (0..3_000).for_each(|round| store.put(&key(round % 8), b"v").unwrap())).fence_count;
    // At most four segments begin, and chunks of the heap for records and segments, each of which has one fence.
    assert!((3_001..3_016).contains(&fences), "{fences}");
}

/// Returns the steps of a log that reads cost: of a present key, of an absent one, and of a scan. They are 0 if nothing
/// is pending.
fn reading_steps(sim: &Sim, store: &OnSim) -> [u64; 3] {
    let steps = |read: &dyn Fn()| {
        let before = sim.step_count();
        read();
        sim.step_count() - before
    };
    let get = |number| steps(&|| _ = store.get(&key(number), &mut |_, _, _| {}).unwrap());
    let scan = || {
        let mut cursor = ScanCursor::new(Bound::Unbounded, Direction::Forward);
        assert!(!store.scan(&mut cursor, &mut |_, _| ControlFlow::Continue(())).unwrap());
    };
    [get(1), get(3), steps(&scan)]
}

/// If one thread has waited for a log, the writer or a reader before the writer's end, later threads need not wait.
#[test]
fn durable_ticket_is_waited_for_once() {
    let sim = Sim::new(0, Model::Span);
    let store = Arc::new(Pmekv::format(sim.clone(), HostDram, &PARAMETERS, Options::default()).unwrap());
    store.put(&key(1), b"value").unwrap();
    assert_eq!(reading_steps(&sim, &store), [0; 3], "a put");
    store.write_batch(&[BatchOp::Put { key: &key(1), value: b"" }, BatchOp::Put { key: &key(2), value: b"" }]).unwrap();
    assert_eq!(reading_steps(&sim, &store), [0; 3], "a batch");
    store.clear().unwrap();
    assert_eq!(reading_steps(&sim, &store), [0; 3], "a clear");
    let (theirs, first, second) = (Arc::clone(&store), Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(9)));
    let (noted, noted_then) = (Arc::clone(&first), Arc::clone(&second));
    sim.observe(Box::new(move |sim, kind| {
        if kind == StepKind::WaitBegin {
            noted.store(reading_steps(sim, &theirs)[0], Ordering::Relaxed);
            noted_then.store(reading_steps(sim, &theirs)[0], Ordering::Relaxed);
        }
    }));
    store.put(&key(1), b"another").unwrap();
    sim.unobserve();
    assert_eq!((first.load(Ordering::Relaxed), second.load(Ordering::Relaxed)), (2, 0), "readers before their writer");
}

/// Group deletes of keys that another thread has just deleted wait for that thread's log, as a single delete does.
#[test]
fn absence_is_reported_once_durable() {
    let sim = Sim::new(0, Model::Span);
    let store = Arc::new(Pmekv::format(sim.clone(), HostDram, &PARAMETERS, Options::default()).unwrap());
    store.put(&key(1), b"value").unwrap();
    let (theirs, waited) = (Arc::clone(&store), Arc::new(AtomicU64::new(0)));
    let noted = Arc::clone(&waited);
    sim.observe(Box::new(move |sim, kind| {
        if kind == StepKind::WaitBegin {
            let before = sim.step_count();
            theirs.multi_delete_each(&[&key(1), &key(2)], &mut |_, done| assert!(!done.unwrap()));
            noted.store(sim.step_count() - before, Ordering::Relaxed);
        }
    }));
    assert!(store.delete(&key(1)).unwrap());
    sim.unobserve();
    assert_eq!(waited.load(Ordering::Relaxed), 2, "a wait begins and ends");
}
