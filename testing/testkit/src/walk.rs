//! One run of a script on one medium, with one visitor.
//!
//! The scene is locked while the observer works and at an operation's begin and end, never while an operation runs.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use parking_lot::Mutex;
use pmem_sim::{Crashable, Model};

use crate::at_snapshot::Taken;
use crate::examine::{account, panicked};
use crate::explore::{Counts, Settings};
use crate::oracle::{State, holds};
use crate::read::{in_order, read, refused};
use crate::scene::Scene;
use crate::script::{Change, Key, Op, Script, changes, expiring_changes, slices};
use crate::subject::{Contents, Failure, Subject};
use crate::violation::{Problem, Violation};
use crate::visitor::Visitor;

/// A run of a script.
#[derive(Clone, Copy)]
pub(crate) struct Task<'a> {
    pub(crate) script: &'a Script,
    pub(crate) model: Model,
    pub(crate) visitor: Visitor,
}

/// The outcome of an operation that did not fail.
pub(crate) enum Outcome {
    /// The operation took effect.
    Done,
    /// The medium is full, and nothing has changed.
    Refused,
    /// The medium is full, and the store holds these contents.
    Partly(Contents),
}

/// Runs the task to its end or to the first violation.
pub(crate) fn walk<S: Subject>(task: Task<'_>, settings: &Settings) -> Result<Counts, Box<Violation>> {
    let mut walk = Walk::<S>::new(task, settings);
    let ops = task.script.setup.iter().chain(&task.script.explored);
    for (op_index, op) in ops.enumerate() {
        if op_index == task.script.setup.len() {
            walk.observe();
        }
        walk.perform(op_index, op)?;
    }
    walk.finish()
}

struct Walk<S: Subject> {
    sim: S::Medium,
    store: Option<Arc<S>>,
    scene: Arc<Mutex<Scene<S>>>,
}

impl<S: Subject> Walk<S> {
    fn new(task: Task<'_>, settings: &Settings) -> Walk<S> {
        S::set_time(0);
        let sim = S::Medium::new(settings.region_bytes, task.model);
        let sim = settings.canary.map_or(sim.clone(), |canary| sim.with_canary(canary));
        Walk { sim, store: None, scene: Arc::new(Mutex::new(Scene::new(task, settings))) }
    }

    fn observe(&self) {
        self.scene.lock().explore();
        if let Some(observer) = self.scene.lock().beside() {
            self.sim.observe_beside(observer);
        }
        let scene = Arc::clone(&self.scene);
        self.sim.observe(Box::new(move |sim, kind| scene.lock().stepped(sim, kind)));
    }

    fn perform(&mut self, op_index: usize, op: &Op) -> Result<(), Box<Violation>> {
        self.scene.lock().begin(op_index, op);
        let done = catch_unwind(AssertUnwindSafe(|| {
            let outcome = self.apply(op)?;
            self.compare_snapshots(*op == Op::Scan)?;
            Ok(outcome)
        }));
        let done = done.unwrap_or_else(|panic| Err(panicked(&*panic)));
        self.scene.lock().end(&self.sim, done)
    }

    fn apply(&mut self, op: &Op) -> Result<Outcome, Problem> {
        let store = || self.store.as_deref().expect("a script formats first");
        match op {
            Op::Format => return self.replace(S::format(self.sim.clone()).map_err(refused("format"))?),
            Op::Reopen => return self.reopen(),
            Op::Put(key, value) => match store().put(key, value) {
                Err(Failure::Full) => return Ok(Outcome::Refused),
                done => done.map_err(refused("put"))?,
            },
            Op::MultiPut(items) => match store().multi_put(&slices(items)) {
                Err(Failure::Full) => return self.partly(store()),
                done => done.map_err(refused("multi_put"))?,
            },
            Op::Batch(batch) => match store().batch(&changes(batch)) {
                Err(Failure::Full) => return Ok(Outcome::Refused),
                done => done.map_err(refused("batch"))?,
            },
            Op::BatchIf { expected, changes: batch } => return self.batch_if(store(), expected, batch),
            Op::BatchExpiring(batch) => match store().batch_expiring(&expiring_changes(batch)) {
                Err(Failure::Full) => return Ok(Outcome::Refused),
                done => done.map_err(refused("batch_expiring"))?,
            },
            Op::Delete(key) => return self.delete(store(), key),
            Op::MultiDelete(keys) => return self.multi_delete(store(), keys),
            Op::Snapshot => self.take_snapshot(store())?,
            Op::Release => self.release(store(), 1),
            Op::Cas { key, expected, new } => return self.swap(store(), key, expected.as_deref(), new.as_deref()),
            Op::PutExpiring(key, value, at_ms) => match store().put_expiring(key, value, *at_ms) {
                Err(Failure::Full) => return Ok(Outcome::Refused),
                done => done.map_err(refused("put_expiring"))?,
            },
            Op::Expire(key, at_ms) => return self.expire(store(), key, *at_ms),
            Op::At(now_ms) => S::set_time(*now_ms),
            Op::Settle => store().settle().map_err(refused("settle"))?,
            Op::Clear => match self.without_snapshots(store()).clear() {
                Err(Failure::Full) => return Ok(Outcome::Refused),
                done => done.map_err(refused("clear"))?,
            },
            Op::Scan => in_order(store(), &self.acknowledged().expect("a script formats first"))?,
            Op::Compact => store().compact().map_err(refused("compact"))?,
            Op::Full => self.sim.fail_grow_after(0),
            Op::NotFull => self.sim.fail_grow_after(u64::MAX),
        }
        Ok(Outcome::Done)
    }

    fn take_snapshot(&self, store: &S) -> Result<(), Problem> {
        let contents = Arc::new(self.acknowledged().expect("a script formats first"));
        let number = store.snapshot().map_err(refused("snapshot"))?;
        self.scene.lock().snapshots.push(Taken { number, contents });
        Ok(())
    }

    /// Releases the oldest snapshots, at most `count`.
    fn release(&self, store: &S, count: usize) {
        let released: Vec<_> = {
            let mut scene = self.scene.lock();
            let count = count.min(scene.snapshots.len());
            scene.snapshots.drain(..count).collect()
        };
        released.iter().for_each(|taken| store.release(taken.number));
    }

    fn without_snapshots<'a>(&self, store: &'a S) -> &'a S {
        self.release(store, usize::MAX);
        store
    }

    /// Checks that every live snapshot shows the store's contents when it was taken.
    fn compare_snapshots(&self, in_order: bool) -> Result<(), Problem> {
        let Some(store) = self.store.as_deref() else { return Ok(()) };
        let (snapshots, keys) = {
            let scene = self.scene.lock();
            (scene.snapshots.clone(), scene.keys().clone())
        };
        snapshots.iter().try_for_each(|taken| taken.compare(store, &keys, in_order))
    }

    fn acknowledged(&self) -> State {
        self.scene.lock().oracle().acknowledged().clone()
    }

    fn delete(&self, store: &S, key: &[u8]) -> Result<Outcome, Problem> {
        let was_there = self.acknowledged().is_some_and(|held| held.contains_key(key));
        let is_wrong = store.delete(key).map_err(refused("delete"))? != was_there;
        if is_wrong { Err(Problem::Answer(format!("delete of {}", Key(key)))) } else { Ok(Outcome::Done) }
    }

    /// Each delete reports whether its key existed when its turn came.
    fn multi_delete(&self, store: &S, keys: &[Vec<u8>]) -> Result<Outcome, Problem> {
        let mut held = self.acknowledged().unwrap_or_default();
        let were_there: Vec<bool> = keys.iter().map(|key| held.remove(key).is_some()).collect();
        let slices: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
        let said = store.multi_delete(&slices).map_err(refused("multi_delete"))?;
        if said == were_there { Ok(Outcome::Done) } else { Err(Problem::Answer("multi_delete".into())) }
    }

    fn expire(&self, store: &S, key: &[u8], at_ms: Option<u64>) -> Result<Outcome, Problem> {
        let was_there = self.acknowledged().is_some_and(|held| held.contains_key(key));
        match store.expire(key, at_ms) {
            Ok(said) if said == was_there => Ok(Outcome::Done),
            Ok(_) => Err(Problem::Answer(format!("expire of {}", Key(key)))),
            Err(Failure::Full) => Ok(Outcome::Refused),
            Err(failure) => Err(refused("expire")(failure)),
        }
    }

    fn swap(&self, store: &S, key: &[u8], expected: Option<&[u8]>, new: Option<&[u8]>) -> Result<Outcome, Problem> {
        let is_equal = self.acknowledged().and_then(|mut held| held.remove(key)).as_deref() == expected;
        match store.compare_and_swap(key, expected, new) {
            Ok(is_swapped) if is_swapped == is_equal => Ok(Outcome::Done),
            Ok(_) => Err(Problem::Answer(format!("cas of {}", Key(key)))),
            Err(Failure::Full) => Ok(Outcome::Refused),
            Err(failure) => Err(refused("compare_and_swap")(failure)),
        }
    }

    fn batch_if(&self, store: &S, expected: &[Change], batch: &[Change]) -> Result<Outcome, Problem> {
        let hold = holds(&self.acknowledged(), expected);
        match store.batch_if(&changes(expected), &changes(batch)) {
            Ok(is_done) if is_done == hold => Ok(Outcome::Done),
            Ok(_) => Err(Problem::Answer("batch_if".into())),
            Err(Failure::Full) => Ok(Outcome::Refused),
            Err(failure) => Err(refused("batch_if")(failure)),
        }
    }

    fn partly(&self, store: &S) -> Result<Outcome, Problem> {
        self.scene.lock().await_rival();
        let keys = self.scene.lock().keys().clone();
        read(store, &keys).map(Outcome::Partly)
    }

    fn reopen(&mut self) -> Result<Outcome, Problem> {
        self.without_snapshots(self.store.as_deref().expect("a script formats first"));
        {
            let mut scene = self.scene.lock();
            scene.receive(None);
            scene.await_rival();
        }
        let store = self.store.take().and_then(Arc::into_inner).expect("visitors keep no store");
        store.close().map_err(refused("close"))?;
        self.replace(S::open(self.sim.clone()).map_err(refused("open"))?)
    }

    fn replace(&mut self, store: S) -> Result<Outcome, Problem> {
        let store = Arc::new(store);
        self.store = Some(Arc::clone(&store));
        self.scene.lock().receive(Some(store));
        Ok(Outcome::Done)
    }

    /// Checks that at the end the live store holds the expected contents and uses no more space than they need.
    fn finish(self) -> Result<Counts, Box<Violation>> {
        self.sim.unobserve();
        // Settling needs space, and the script may have left the medium full.
        self.sim.fail_grow_after(u64::MAX);
        if let Some(store) = &self.store {
            self.without_snapshots(store);
            let mut scene = self.scene.lock();
            let held = catch_unwind(AssertUnwindSafe(|| {
                let contents = read(&**store, scene.keys())?;
                store.settle().map_err(refused("settle"))?;
                account(&**store, &contents)?;
                Ok(contents)
            }));
            let held = held.unwrap_or_else(|panic| Err(panicked(&*panic)));
            let judged = held.and_then(|contents| scene.oracle().judge(&Some(contents)));
            scene.conclude(judged)?;
        }
        Ok(self.scene.lock().counts())
    }
}

impl<S: Subject> Drop for Walk<S> {
    /// Breaks a cycle: the observer owns the scene, which owns the store, which owns the medium.
    fn drop(&mut self) {
        self.sim.unobserve();
    }
}
