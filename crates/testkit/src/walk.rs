//! One run of a script on one medium, with one visitor: crashed after every step.
//!
//! The scene is locked while the observer works and while the oracle is told of an operation's begin and end, never while
//! an operation runs.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use parking_lot::Mutex;
use pmem_sim::{Model, Sim, StepKind};

use crate::examine::{Examiner, Fault, panicked};
use crate::explore::{Counts, Settings};
use crate::oracle::Oracle;
use crate::read::{read, refused};
use crate::script::{Key, Op, Script};
use crate::subject::{Failure, Subject};
use crate::violation::{Problem, Violation};
use crate::visitor::Visitor;

/// Which run of a script.
#[derive(Clone, Copy)]
pub(crate) struct Task<'a> {
    pub(crate) script: &'a Script,
    pub(crate) model: Model,
    pub(crate) visitor: Visitor,
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
    sim: Sim,
    store: Option<Arc<S>>,
    scene: Arc<Mutex<Scene<S>>>,
}

/// What the run and the medium's observer share.
struct Scene<S: Subject> {
    examiner: Examiner,
    oracle: Oracle,
    /// For visitors; none while it is formatted or reopened.
    store: Option<Arc<S>>,
    images_per_step_max: usize,
    explores: bool,
    /// Whether the visitor was there during the operation in flight: before that, the run shows nothing new.
    visited: bool,
    /// Where the run is, without a problem yet.
    place: Violation,
    violation: Option<Box<Violation>>,
}

impl<S: Subject> Walk<S> {
    fn new(task: Task<'_>, settings: &Settings) -> Walk<S> {
        let Task { script, model, visitor } = task;
        let sim = Sim::new(settings.region_bytes, model);
        let place = Violation {
            seed: script.seed,
            model,
            visitor,
            op_index: 0,
            op: Op::Format,
            op_step: 0,
            kind: None,
            images: Vec::new(),
            problem: Problem::Contents(String::new()),
        };
        let scene = Scene {
            examiner: Examiner::new(settings.clone(), model, script.keys()),
            oracle: Oracle::exactly(None),
            store: None,
            images_per_step_max: settings.images_per_step_max,
            explores: false,
            visited: visitor == Visitor::Nobody,
            place,
            violation: None,
        };
        let sim = settings.canary.map_or(sim.clone(), |canary| sim.with_canary(canary));
        Walk { sim, store: None, scene: Arc::new(Mutex::new(scene)) }
    }

    fn observe(&self) {
        self.scene.lock().explores = true;
        let scene = Arc::clone(&self.scene);
        self.sim.observe(Box::new(move |sim, kind| scene.lock().stepped(sim, kind)));
    }

    fn perform(&mut self, op_index: usize, op: &Op) -> Result<(), Box<Violation>> {
        self.scene.lock().begin(op_index, op);
        let done = catch_unwind(AssertUnwindSafe(|| self.apply(op)));
        let done = done.unwrap_or_else(|panic| Err(panicked(&*panic)));
        let mut scene = self.scene.lock();
        scene.end(&self.sim, done);
        scene.violation.take().map_or(Ok(()), Err)
    }

    /// Whether the operation took place: a full medium may refuse it.
    fn apply(&mut self, op: &Op) -> Result<bool, Problem> {
        let store = || self.store.as_deref().expect("a script formats first");
        match op {
            Op::Format => return self.replace(S::format(self.sim.clone()).map_err(refused("format"))?),
            Op::Reopen => return self.reopen(),
            Op::Put(key, value) => match store().put(key, value) {
                Err(Failure::Full) => return Ok(false),
                done => done.map_err(refused("put"))?,
            },
            Op::Delete(key) => return self.delete(store(), key),
            Op::Clear => match store().clear() {
                Err(Failure::Full) => return Ok(false),
                done => done.map_err(refused("clear"))?,
            },
            Op::Full => self.sim.fail_grow_after(0),
            Op::Room => self.sim.fail_grow_after(u64::MAX),
        }
        Ok(true)
    }

    fn delete(&self, store: &S, key: &[u8]) -> Result<bool, Problem> {
        let was_there = self.scene.lock().oracle.acknowledged().as_ref().is_some_and(|held| held.contains_key(key));
        let is_wrong = store.delete(key).map_err(refused("delete"))? != was_there;
        if is_wrong { Err(Problem::Answer(format!("delete of {}", Key(key)))) } else { Ok(true) }
    }

    fn reopen(&mut self) -> Result<bool, Problem> {
        self.scene.lock().store = None;
        let store = self.store.take().and_then(Arc::into_inner).expect("visitors keep no store");
        store.close().map_err(refused("close"))?;
        self.replace(S::open(self.sim.clone()).map_err(refused("open"))?)
    }

    fn replace(&mut self, store: S) -> Result<bool, Problem> {
        let store = Arc::new(store);
        self.store = Some(Arc::clone(&store));
        self.scene.lock().store = Some(store);
        Ok(true)
    }

    /// The live store holds at the end what it should.
    fn finish(self) -> Result<Counts, Box<Violation>> {
        self.sim.unobserve();
        let mut scene = self.scene.lock();
        if let Some(store) = &self.store {
            let held = catch_unwind(AssertUnwindSafe(|| read(&**store, scene.examiner.keys())));
            let held = held.unwrap_or_else(|panic| Err(panicked(&*panic)));
            let judged = held.and_then(|contents| scene.oracle.judge(&Some(contents)));
            judged.map_err(|problem| scene.violation_of(problem.into(), None))?;
        }
        Ok(std::mem::take(&mut scene.examiner.counts))
    }
}

impl<S: Subject> Drop for Walk<S> {
    /// The observer owns the scene, which owns the store, which owns the medium.
    fn drop(&mut self) {
        self.sim.unobserve();
    }
}

impl<S: Subject> Scene<S> {
    fn begin(&mut self, op_index: usize, op: &Op) {
        self.oracle.begin(op);
        self.visited = self.place.visitor == Visitor::Nobody;
        self.place = Violation { op_index, op: op.clone(), op_step: 0, ..self.place.clone() };
    }

    fn end(&mut self, sim: &Sim, done: Result<bool, Problem>) {
        match done {
            Ok(true) => self.oracle.acknowledge(),
            Ok(false) => self.oracle.refuse(),
            Err(problem) => return self.object(problem.into(), None),
        }
        if self.explores
            && let Err(fault) = self.crash(sim)
        {
            self.object(fault, None);
        }
    }

    /// After each step: first the visitor, then the crash.
    fn stepped(&mut self, sim: &Sim, kind: StepKind) {
        if self.violation.is_some() {
            return;
        }
        self.place.op_step += 1;
        self.examiner.counts.steps += 1;
        let visited = self.visit(kind).map_err(Fault::from);
        if let Err(fault) = visited.and_then(|()| self.crash(sim)) {
            self.object(fault, Some(kind));
        }
    }

    fn visit(&mut self, kind: StepKind) -> Result<(), Problem> {
        let Scene { place, store, oracle, examiner, .. } = self;
        let Some(store) = store.as_ref().filter(|_| place.visitor.comes(place.op_step, kind)) else { return Ok(()) };
        match (place.visitor, &place.op) {
            (Visitor::Deleter, Op::Delete(key)) => {
                // Whichever of the two deletes is the first, both answers say that the key is gone.
                store.delete(key).map_err(refused("delete by a visitor"))?;
                oracle.saw(key, None)?;
            }
            (Visitor::Deleter, _) => return Ok(()),
            _ => {
                for key in examiner.keys() {
                    oracle.saw(key, store.get(key).map_err(refused("get by a visitor"))?.as_deref())?;
                }
            }
        }
        self.visited = true;
        self.examiner.counts.visits += 1;
        Ok(())
    }

    fn crash(&mut self, sim: &Sim) -> Result<(), Fault> {
        if !self.visited {
            return Ok(());
        }
        let seed = self.place.seed ^ sim.step_count();
        let images = sim.images(self.images_per_step_max, seed);
        images.iter().try_for_each(|image| self.examiner.examine::<S>(image, &self.oracle))
    }

    fn object(&mut self, fault: Fault, kind: Option<StepKind>) {
        let violation = self.violation_of(fault, kind);
        self.violation.get_or_insert(violation);
    }

    fn violation_of(&self, fault: Fault, kind: Option<StepKind>) -> Box<Violation> {
        let Fault { images, problem } = fault;
        Box::new(Violation { kind, images, problem, ..self.place.clone() })
    }
}
