//! Situations that the explorer's visitors do not cover: writers during a checkpoint, batches during a checkpoint,
//! crashes of an opening that follows a crash. Each runs with the correct store and with the broken variant that it
//! must catch.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use engine::prelude::*;
use engine::{BatchOp, OpenError};
use engine_pmekv::{Options, Pmekv, canary};
use heap::Parameters;
use parking_lot::Mutex;
use pmem::{Canary, Probe, Probed, Span};
use pmem_os::HostDram;
use pmem_sim::{Image, Model, Sim, StepKind};

use crate::subject::{OnSim, PARAMETERS};

const ROOMY: Options = Options { log_entry_count_max: 1_000, segment_entry_count: 1_000 };
const NONE: Canary = Canary("none");

fn made(canary: Canary, options: Options, lanes: u32) -> (Sim, Arc<OnSim>) {
    let sim = Sim::new(0, Model::Line).with_canary(canary);
    let parameters = Parameters { partition_count: lanes, ..PARAMETERS };
    (sim.clone(), Arc::new(Pmekv::format(sim, HostDram, &parameters, options).unwrap()))
}

fn opened(image: &Image, canary: Canary, options: Options) -> Result<(Sim, Arc<OnSim>), OpenError> {
    let sim = Sim::from_image(image, Model::Line).with_canary(canary);
    Ok((sim.clone(), Arc::new(Pmekv::open(sim, HostDram, options)?)))
}

/// Returns the image if the process dies now.
fn now(sim: &Sim) -> Image {
    sim.killed().unwrap_or_else(|| sim.images(1, 0).remove(0))
}

fn value(store: &OnSim, key: &[u8]) -> Option<Vec<u8>> {
    let mut found = None;
    store.get(key, &mut |_, _, value| found = Some(value.to_vec())).unwrap();
    found
}

/// Calls `then` once, after the first step of this kind.
fn at_first(sim: &Sim, kind: StepKind, then: impl Fn(&Sim) + Send + 'static) {
    let is_done = AtomicBool::new(false);
    sim.observe(Box::new(move |sim, made| {
        if made == kind && !is_done.swap(true, Ordering::AcqRel) {
            then(sim);
        }
    }));
}

/// Returns true if a put during the writing of nodes is present after a crash.
fn keeps_a_put_during_checkpoint(canary: Canary) -> bool {
    let (sim, store) = made(canary, ROOMY, 2);
    store.put(b"before", b"1").unwrap();
    let other = Arc::clone(&store);
    at_first(&sim, StepKind::Stream, move |_| other.put(b"meanwhile", b"2").unwrap());
    store.checkpoint().unwrap();
    sim.unobserve();
    let (_, store) = opened(&now(&sim), canary, ROOMY).unwrap();
    value(&store, b"before").is_some() && value(&store, b"meanwhile").is_some()
}

#[test]
fn put_during_checkpoint_is_kept() {
    assert!(keeps_a_put_during_checkpoint(NONE));
    assert!(!keeps_a_put_during_checkpoint(canary::MARKS_AFTER_TREE));
}

/// Returns the number of checkpoints so far.
fn checkpoint_count(store: &OnSim) -> f64 {
    let figures = store.stats().figures;
    figures.iter().find(|figure| figure.name == "pmekv_checkpoints").expect("the figure exists").value
}

/// Long enough for any machine: a put that has not finished by then never does.
const PATIENCE: Duration = Duration::from_secs(20);

/// Returns the number of steps of a checkpoint. Asserts that no step is under a lane's lock, whether the log is nearly
/// empty or nearly at its bound: at each step of the medium, puts to all lanes finish while the checkpoint is stopped.
/// (The heap holds its lock for some steps when it allocates or frees chunks and segments. A put that also needs one
/// waits for it: here none does.)
fn steps_at_which_puts_go_on(log_entry_count_max: u64) -> u64 {
    const LANE_COUNT: u32 = 4;
    let (sim, store) = made(NONE, Options { log_entry_count_max, ..ROOMY }, LANE_COUNT);
    let keys: Vec<[u8; 2]> = (0..800_u16).map(u16::to_be_bytes).collect();
    keys.iter().for_each(|key| store.put(key, &[1; 20]).unwrap());
    let (before, steps) = (checkpoint_count(&store), Arc::new(AtomicU64::new(0)));
    let (asks, asked) = mpsc::channel::<u64>();
    let (goes_on, gone_on) = mpsc::channel();
    let theirs = Arc::clone(&store);
    let writer = thread::spawn(move || {
        for number in asked {
            keys.iter().skip(number as usize).take(4).for_each(|key| theirs.put(key, &[2; 20]).unwrap());
            goes_on.send(()).unwrap();
        }
    });
    // Lets the writer reserve its own slots: the loading thread has others.
    asks.send(0).unwrap();
    gone_on.recv().unwrap();
    let (noted, checkpointer) = (Arc::clone(&steps), thread::current().id());
    sim.observe(Box::new(move |_, _| {
        if thread::current().id() == checkpointer {
            asks.send(noted.fetch_add(1, Ordering::Relaxed)).unwrap();
            gone_on.recv_timeout(PATIENCE).expect("a put waits for a checkpoint");
        }
    }));
    store.checkpoint().unwrap();
    sim.unobserve();
    writer.join().unwrap();
    assert_eq!(checkpoint_count(&store), before + 1.0);
    steps.load(Ordering::Relaxed)
}

#[test]
fn puts_continue_during_checkpoint_steps() {
    // Four nodes, the record, the root, and the fence between them.
    assert!(steps_at_which_puts_go_on(100_000) >= 7);
    // The puts are slowed down, and finish.
    assert!(steps_at_which_puts_go_on(1_050) >= 7);
}

/// A caller that reads metrics, as a server does each second, does not wait for a checkpoint.
#[test]
fn figures_are_reported_during_checkpoints() {
    let (sim, store) = made(NONE, ROOMY, 2);
    store.put(b"key", b"1").unwrap();
    let other = Arc::clone(&store);
    at_first(&sim, StepKind::Stream, move |_| drop(other.stats()));
    store.checkpoint().unwrap();
    sim.unobserve();
    let figures = store.stats().figures;
    let figure = |name| figures.iter().find(|figure| figure.name == name).map(|figure| figure.value);
    assert_eq!([figure("pmekv_nodes"), figure("pmekv_checkpoints")], [Some(1.0), Some(2.0)]);
    store.clear().unwrap();
    assert!(store.stats().figures.iter().any(|figure| figure.name == "pmekv_nodes" && figure.value == 0.0));
}

/// The number of polls for which a put is held up, to see that another thread does not continue.
const LOOK_COUNT: usize = 20_000;

/// Otherwise a record that is being written would count as damage.
#[test]
fn idle_store_checks_its_order() {
    let (sim, store) = made(NONE, ROOMY, 1);
    store.put(b"key", b"1").unwrap();
    let (theirs, outcome) = (Arc::clone(&store), Arc::new(Mutex::new(None)));
    let noted = Arc::clone(&outcome);
    at_first(&sim, StepKind::Stream, move |_| {
        let theirs = Arc::clone(&theirs);
        let checking = thread::spawn(move || theirs.check_order(&mut |damage| panic!("{damage:?}")).unwrap());
        for _ in (0..LOOK_COUNT).take_while(|_| !checking.is_finished()) {
            thread::yield_now();
        }
        *noted.lock() = Some((checking.is_finished(), checking));
    });
    store.put(b"meanwhile", b"2").unwrap();
    sim.unobserve();
    let (is_early, checking) = outcome.lock().take().expect("a record was written");
    assert_eq!((is_early, checking.join().unwrap()), (false, 2));
}

/// Keys of both lanes, the first of the first lane, where a batch of them ends.
const KEYS: [[u8; 1]; 8] = [[1], [2], [3], [4], [5], [6], [7], [8]];

fn batch(store: &OnSim, value: &[u8]) {
    let ops: Vec<_> = KEYS.iter().map(|key| BatchOp::Put { key, value }).collect();
    store.write_batch(&ops).unwrap();
}

fn shows(store: &OnSim, expected: &[u8]) -> bool {
    KEYS.iter().all(|key| value(store, key).as_deref() == Some(expected))
}

/// Returns true if a batch during a checkpoint is present after a crash.
fn keeps_a_batch_during_checkpoint(canary: Canary) -> bool {
    let (sim, store) = made(canary, ROOMY, 2);
    batch(&store, b"1");
    let other = Arc::clone(&store);
    // After the first lane's cut, in the variant that cuts lanes one by one.
    at_first(&sim, StepKind::Order, move |_| batch(&other, b"2"));
    store.checkpoint().unwrap();
    sim.unobserve();
    opened(&now(&sim), canary, ROOMY).is_ok_and(|(_, store)| shows(&store, b"2"))
}

#[test]
fn batch_during_checkpoint_is_kept() {
    assert!(keeps_a_batch_during_checkpoint(NONE));
    assert!(!keeps_a_batch_during_checkpoint(canary::BATCH_CUT_APART));
}

/// Returns true if a batch that a crash cuts off is dropped, although a batch with the same number completed in the
/// previous opening.
fn drops_a_batch_of_the_next_opening(canary: Canary) -> bool {
    let (sim, store) = made(canary, ROOMY, 2);
    batch(&store, b"1");
    let (sim, store) = opened(&now(&sim), canary, ROOMY).unwrap();
    let crashed = Arc::new(std::sync::Mutex::new(None));
    let noted = Arc::clone(&crashed);
    // Headers of segments are ordered first; the last order is that of the entries.
    sim.observe(Box::new(move |sim, kind| {
        if kind == StepKind::Order {
            *noted.lock().unwrap() = Some(now(sim));
        }
    }));
    batch(&store, b"2");
    sim.unobserve();
    let image = crashed.lock().unwrap().take().expect("entries are ordered before their end");
    opened(&image, canary, ROOMY).is_ok_and(|(_, store)| shows(&store, b"1"))
}

#[test]
fn batches_of_two_openings_are_not_mistaken() {
    assert!(drops_a_batch_of_the_next_opening(NONE));
    assert!(!drops_a_batch_of_the_next_opening(canary::BATCH_NUMBER_RETURNS));
}

/// Returns true if a key that an opening dropped stays absent, whatever the next write leaves: tests images of writes
/// to images of writes.
fn keeps_what_was_dropped_away(canary: Canary, count_max: usize) -> bool {
    let (sim, store) = made(canary, ROOMY, 1);
    store.put(b"a", b"1").unwrap();
    images_of(&sim, count_max, || store.put(b"b", b"2").unwrap()).iter().all(|image| {
        let Ok((_, store)) = opened(image, canary, ROOMY) else { return false };
        let was_there = value(&store, b"b").is_some();
        let (sim, store) = opened(image, canary, ROOMY).unwrap();
        images_of(&sim, count_max, || store.put(b"c", b"3").unwrap()).iter().all(|image| {
            opened(image, canary, ROOMY).is_ok_and(|(_, store)| value(&store, b"b").is_some() == was_there)
        })
    })
}

/// Returns images of every step of `work`, at most `count_max` of each.
fn images_of(sim: &Sim, count_max: usize, work: impl FnOnce()) -> Vec<Image> {
    let images = Arc::new(std::sync::Mutex::new(Vec::new()));
    let noted = Arc::clone(&images);
    sim.observe(Box::new(move |sim, _| noted.lock().unwrap().extend(sim.images(count_max, sim.step_count()))));
    work();
    sim.unobserve();
    let mut images = std::mem::take(&mut *images.lock().unwrap());
    images.sort_by_key(Image::hash);
    images.dedup_by_key(|image| image.hash());
    images
}

#[test]
fn dropped_key_does_not_return() {
    assert!(keeps_what_was_dropped_away(NONE, 32));
    assert!(!keeps_what_was_dropped_away(canary::OPENING_NOT_COUNTED, 32));
    assert!(!keeps_what_was_dropped_away(canary::DROPPED_NOT_VOIDED, 200));
}

/// A callback for reads of records.
type Reading = Box<dyn Fn(Span) + Send + Sync>;

#[derive(Default)]
struct AtReads(Mutex<Option<Arc<Reading>>>);

impl Probe for AtReads {
    fn read(&self, span: Span) {
        let reading = self.0.lock().clone();
        reading.into_iter().for_each(|reading| reading(span));
    }
}

/// Returns the values that a reader of two keys finds. A batch of both is published when the first record is about to
/// be read, and the read ends before the index has the batch's second key.
fn beside_half_a_batch(read: impl Fn(&dyn Engine, [&[u8]; 2]) -> Vec<u8>) -> Vec<u8> {
    let sim = Probed::with_probe(Sim::new(0, Model::Line), AtReads::default());
    let store = Arc::new(Pmekv::format(sim, HostDram, &PARAMETERS, ROOMY).unwrap());
    let keys: [&[u8]; 2] = [b"first key", b"second key"];
    keys.iter().for_each(|key| store.put(key, b"o").unwrap());
    let (reader, writer) = (thread::current().id(), Arc::clone(&store));
    let ((is_half, half), (is_over, over)) = (mpsc::channel(), mpsc::channel());
    let (half, over, is_begun) = (Mutex::new(half), Mutex::new(over), AtomicBool::new(false));
    // The batch reads records of the second key alternately with those of the first: to find it, for its expiry, and
    // for the index.
    let (last, turns) = (AtomicU64::new(0), AtomicU64::new(0));
    let (batch, batches) = mpsc::channel();
    let reading: Reading = Box::new(move |span| {
        if thread::current().id() == reader {
            if !is_begun.swap(true, Ordering::AcqRel) {
                batch.send(()).unwrap();
                half.lock().recv_timeout(PATIENCE).unwrap();
            }
        } else if last.swap(span.start.0, Ordering::AcqRel) != span.start.0
            && turns.fetch_add(1, Ordering::AcqRel) + 1 == 6
        {
            is_half.send(()).unwrap();
            over.lock().recv_timeout(PATIENCE).unwrap();
        }
    });
    let AtReads(at_reads) = store.medium().probe();
    *at_reads.lock() = Some(Arc::new(reading));
    let writes = thread::spawn(move || {
        batches.recv().unwrap();
        writer.write_batch(&keys.map(|key| BatchOp::Put { key, value: b"n" })).unwrap();
    });
    let found = read(&*store, keys);
    is_over.send(()).unwrap();
    writes.join().unwrap();
    found
}

/// A reader that has seen one key of a batch sees the whole batch, even if its lookup began before the batch was
/// published.
#[test]
fn multi_get_reads_batches_atomically() {
    let searched = beside_half_a_batch(|store, keys| {
        let mut values = Vec::new();
        store.multi_get(&keys, &mut |_, value| values.extend(value.unwrap())).unwrap();
        values
    });
    assert_eq!(searched, b"nn");
    let looked = beside_half_a_batch(|store, keys| {
        let (pin, mut seen) = (epoch::pin(), [None; 2]);
        let seen_count = store.lookup_many(pin.pinned(), &keys, &mut seen);
        seen[..seen_count].iter().flat_map(|value| value.unwrap()).copied().collect()
    });
    assert!(looked.is_empty(), "{looked:?}");
}
