//! Data that is visible and not durable yet, on a log: a reader that finds a change waits for the log; a later reader
//! waits for nothing.

use std::ops::{Bound, ControlFlow};
use std::sync::{Arc, Mutex};

use pbtree::{BatchWrite, Change, Merged, Value};
use pmem_sim::{Image, Model, Sim, StepKind};
use testkit::{Direction, Operations, Subject};

use crate::subject::{Crashed, put};

const KEY: &[u8] = b"key";

fn get<S: Operations>(store: &S) -> Option<Vec<u8>> {
    store.get(KEY).unwrap()
}

fn scanned<S: Operations>(store: &S) -> Option<Vec<u8>> {
    let mut found = None;
    let mut show = |key: &[u8], value: &[u8]| {
        if key == KEY {
            found = Some(value.to_vec());
        }
        ControlFlow::Continue(())
    };
    store.scan(Bound::Unbounded, Direction::Forward, &mut show).unwrap();
    found
}

/// Reads twice while a writer waits for its log. Returns the value read, whether it survives every loss of power from
/// then on, and the number of steps of the second read.
fn met<S: Subject<Medium = Sim> + Send + Sync + 'static>(look: fn(&S) -> Option<Vec<u8>>) -> (Vec<u8>, bool, u64) {
    let sim = Sim::new(0, Model::Span);
    let store = Arc::new(S::format(sim.clone()).unwrap());
    [&b"before"[..], KEY, b"zzz"].iter().for_each(|key| store.put(key, b"old").unwrap());
    let (theirs, outcome) = (Arc::clone(&store), Arc::new(Mutex::new(None)));
    let noted = Arc::clone(&outcome);
    sim.observe(Box::new(move |sim, kind| {
        if kind == StepKind::WaitBegin {
            let seen = look(&theirs);
            let images = sim.images(16, 1);
            let is_there = |image| get(&S::open(Sim::from_image(image, Model::Span)).unwrap()) == seen;
            let (stays, before) = (images.iter().all(is_there), sim.step_count());
            assert_eq!(look(&theirs), seen);
            *noted.lock().unwrap() = Some((seen.unwrap(), stays, sim.step_count() - before));
        }
    }));
    store.put(KEY, b"new").unwrap();
    sim.unobserve();
    let outcome = outcome.lock().unwrap().take();
    outcome.expect("a writer waits for its log")
}

#[test]
fn met_write_is_durable_and_awaited_once() {
    let expected = (b"new".to_vec(), true, 0);
    assert_eq!(met::<Crashed>(get), expected, "a value of its own, read");
    assert_eq!(met::<Crashed>(scanned), expected, "a value of its own, scanned");
    assert_eq!(met::<Crashed<true>>(get), expected, "a value written over another, read");
    assert_eq!(met::<Crashed<true>>(scanned), expected, "a value written over another, scanned");
}

/// A split moves a value to a new node while the value's writer waits for the log. The value is read before the
/// splitting thread itself waits: during its second lookup, in the half that it writes to.
#[test]
fn split_items_are_durable_when_met() {
    let sim = Sim::new(0, Model::Span);
    let store = Arc::new(Crashed::<false>::format(sim.clone()).unwrap());
    // With KEY, exactly as many as a leaf holds.
    b"abcdef".iter().for_each(|key| store.put(&[*key], b"old").unwrap());
    let (theirs, outcomes) = (Arc::clone(&store), Arc::new(Mutex::new(Vec::new())));
    let noted = Arc::clone(&outcomes);
    sim.observe(Box::new(move |sim, kind| {
        let mut asked = 0;
        let mut allowed = |_: Option<&Value<'_>>| {
            asked += 1;
            if asked == 2 {
                noted.lock().unwrap().push(values_before_and_after_crash(&theirs, sim));
            }
            true
        };
        if kind == StepKind::WaitBegin {
            theirs.0.write(1, b"aa", put(b"other"), &mut allowed).unwrap();
        }
    }));
    store.put(KEY, b"new").unwrap();
    sim.unobserve();
    let outcomes = outcomes.lock().unwrap();
    let [(seen, left)] = &outcomes[..] else { panic!("the leaf was split {} times", outcomes.len()) };
    assert_eq!(seen.as_deref(), Some(&b"new"[..]));
    assert!(left.iter().all(|value| value == seen), "{left:?}");
}

/// A merge moves a value to a new node while the value's writer waits for the log, and waits for nothing itself.
#[test]
fn merged_items_are_durable_when_met() {
    let sim = Sim::new(0, Model::Span);
    let store = Arc::new(Crashed::<false>::format(sim.clone()).unwrap());
    // One more than a leaf holds, of which two leaves with few pairs remain.
    [KEY, b"a", b"b", b"c", b"d", b"x", b"y", b"z"].iter().for_each(|key| store.put(key, b"old").unwrap());
    [&b"a"[..], b"b", b"c", b"x", b"y"].iter().for_each(|key| _ = store.delete(key).unwrap());
    let (theirs, outcomes) = (Arc::clone(&store), Arc::new(Mutex::new(Vec::new())));
    let noted = Arc::clone(&outcomes);
    sim.observe(Box::new(move |sim, kind| {
        if kind == StepKind::WaitBegin {
            assert_eq!(theirs.0.merge(1, 1, None, &mut |_| ()).unwrap(), Merged::Fewer);
            noted.lock().unwrap().push(values_before_and_after_crash(&theirs, sim));
        }
    }));
    store.put(KEY, b"new").unwrap();
    sim.unobserve();
    let outcomes = outcomes.lock().unwrap();
    let [(seen, left)] = &outcomes[..] else { panic!("the writer waited {} times", outcomes.len()) };
    assert_eq!(seen.as_deref(), Some(&b"new"[..]));
    assert!(left.iter().all(|value| value == seen), "{left:?}");
}

/// Returns the value that a read of KEY finds, and the values that remain after each loss of power.
fn values_before_and_after_crash(store: &Crashed, sim: &Sim) -> (Option<Vec<u8>>, Vec<Option<Vec<u8>>>) {
    let seen = get(store);
    let left = sim.images(16, 1).into_iter().map(|image| get(&reopened(&image)));
    (seen, left.collect())
}

fn reopened(image: &Image) -> Crashed {
    Crashed::open(Sim::from_image(image, Model::Span)).unwrap()
}

#[test]
fn batch_is_durable_when_it_returns() {
    let sim = Sim::new(0, Model::Line);
    let store = Crashed::<false>::format(sim.clone()).unwrap();
    [&b"before"[..], KEY, b"zzz"].iter().for_each(|key| store.put(key, b"old").unwrap());
    let mut writes = [BatchWrite::new(KEY, put(b"new")), BatchWrite::new(b"zzz", Change::Delete)];
    assert_eq!(store.0.batch(0, &[], &mut |_, _| true, &mut writes).unwrap(), None);
    let images = sim.images(16, 1);
    let opened = images.iter().map(|image| Crashed::<false>::open(Sim::from_image(image, Model::Line)).unwrap());
    for left in opened {
        assert_eq!((get(&left), left.get(b"zzz").unwrap()), (Some(b"new".to_vec()), None));
    }
}
