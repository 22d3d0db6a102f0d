//! The state that a run and its medium's observer share: the oracle, the visitor, and the crash images to examine.
//!
//! The observer only collects crash images. They are examined after the operation. During the operation the thread is
//! inside the store's code, and whatever that code holds (such as a pin that keeps memory from being freed) would also
//! affect the recovered stores.

use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::Mutex;
use pmem_sim::{CrashImage, Crashable, ObserverOf, StepKind};

use crate::at_snapshot::Taken;
use crate::examine::{Examiner, Fault, ImageOf};
use crate::explore::{Counts, End, Settings};
use crate::oracle::Oracle;
use crate::read::{refused, scanned};
use crate::reservoir::Reservoir;
use crate::rival::Rival;
use crate::script::Op;
use crate::subject::{Failure, Subject};
use crate::violation::{Problem, Violation};
use crate::visitor::Visitor;
use crate::walk::{Outcome, Task};

/// A possible crash and the states that would be legal after it.
struct Crash<S: Subject> {
    image: ImageOf<S>,
    oracle: Arc<Oracle>,
    op_step: u64,
    kind: Option<StepKind>,
}

/// The state shared by a run and its observer; see the module's head.
pub(crate) struct Scene<S: Subject> {
    examiner: Examiner,
    /// Shared with the crashes.
    oracle: Arc<Oracle>,
    /// The store for visitors; `None` while it is formatted or reopened.
    store: Option<Arc<S>>,
    /// The second writer, if the visitor is one.
    rival: Option<Rival<S>>,
    /// The value that the second writer is writing or wrote last.
    rival_value: Option<Vec<u8>>,
    /// Live snapshots, oldest first.
    pub(crate) snapshots: Vec<Taken>,
    /// Crash images taken at the second writer's steps, and their oracle, in which the second writer's write and the
    /// operation in flight are both in flight.
    rival_images: Arc<Mutex<Vec<ImageOf<S>>>>,
    rival_oracle: Arc<Oracle>,
    images_per_step_max: usize,
    rival_images_per_step_max: usize,
    end: End,
    explores: bool,
    /// True if the visitor has run during the operation in flight. Before that, this run shows nothing new.
    visited: bool,
    crashes: Reservoir<(u64, u64), Crash<S>>,
    /// The current place of the run; its problem is not filled in.
    place: Violation,
    violation: Option<Box<Violation>>,
}

impl<S: Subject> Scene<S> {
    pub(crate) fn new(task: Task<'_>, settings: &Settings) -> Scene<S> {
        let Task { script, model, visitor } = task;
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
        Scene {
            examiner: Examiner::new(settings.clone(), model, script.keys()),
            oracle: Arc::new(Oracle::exactly(None)),
            store: None,
            rival: visitor.writes().then(|| Rival::start(script.rival().to_vec(), script.has_rival_batches())),
            rival_value: None,
            snapshots: Vec::new(),
            rival_images: Arc::default(),
            rival_oracle: Arc::new(Oracle::exactly(None)),
            rival_images_per_step_max: settings.rival_images_per_step_max,
            images_per_step_max: settings.images_per_step_max,
            end: settings.end,
            explores: false,
            visited: false,
            crashes: Reservoir::new(settings.images_per_op_max, script.seed),
            place,
            violation: None,
        }
    }

    pub(crate) fn oracle(&self) -> &Oracle {
        &self.oracle
    }

    /// Returns the keys to look up.
    pub(crate) fn keys(&self) -> &BTreeSet<Vec<u8>> {
        self.examiner.keys()
    }

    pub(crate) fn counts(&self) -> Counts {
        self.examiner.counts
    }

    /// Ends the setup.
    pub(crate) fn explore(&mut self) {
        self.explores = true;
    }

    /// Sets the store that visitors use from now on.
    pub(crate) fn receive(&mut self, store: Option<Arc<S>>) {
        self.store = store;
    }

    /// Waits until the second writer's write has ended. The operation in flight holds no lock any more.
    pub(crate) fn await_rival(&mut self) {
        if let Some(answer) = self.rival.as_mut().and_then(Rival::end) {
            self.rival_answered(answer);
        }
    }

    /// Returns the observer to be called by the second writer's thread after each of its steps; `None` if these steps
    /// are not crashed.
    pub(crate) fn beside(&self) -> Option<ObserverOf<S::Medium>> {
        let (images, end, max) = (Arc::clone(&self.rival_images), self.end, self.rival_images_per_step_max);
        let note = move |sim: &S::Medium, _| images.lock().extend(images_of(sim, end, max, sim.step_count()));
        (max > 0).then(|| Box::new(note) as ObserverOf<S::Medium>)
    }

    /// Records the crashes of the second writer's write, which has ended with all its steps.
    fn note_rival_crashes(&mut self) {
        let images = std::mem::take(&mut *self.rival_images.lock());
        for image in images {
            self.note_crash(image, Arc::clone(&self.rival_oracle), None);
        }
    }

    /// Handles the answer to the second writer's last write.
    fn rival_answered(&mut self, answer: Result<(), Failure>) {
        self.note_rival_crashes();
        let oracle = Arc::make_mut(&mut self.oracle);
        match answer {
            Ok(()) => oracle.rival_ends(&self.rival_value, true),
            Err(Failure::Full) => oracle.rival_ends(&self.rival_value, false),
            Err(failure) => {
                let problem = refused("a write by a second writer")(failure);
                self.object(problem.into(), None);
            }
        }
    }

    /// Reads the second writer's key if more than one value is legal. No write is in progress.
    fn check_rival(&mut self) -> Result<(), Box<Violation>> {
        let Some(store) = self.store.clone().filter(|_| self.oracle.is_rival_open()) else { return Ok(()) };
        let key = self.rival.as_ref().expect("a second writer wrote").key().to_vec();
        let found = store.get(&key).map_err(refused("get"));
        let judged = found.and_then(|value| Arc::make_mut(&mut self.oracle).rival_found(&key, value));
        self.conclude(judged)
    }

    /// Begins an operation.
    pub(crate) fn begin(&mut self, op_index: usize, op: &Op) {
        Arc::make_mut(&mut self.oracle).begin(op);
        self.visited = self.place.visitor == Visitor::Nobody;
        self.place = Violation { op_index, op: op.clone(), op_step: 0, ..self.place.clone() };
    }

    /// Ends an operation, which took effect, was refused or failed, and examines its crashes.
    pub(crate) fn end(&mut self, sim: &S::Medium, done: Result<Outcome, Problem>) -> Result<(), Box<Violation>> {
        self.await_rival();
        let oracle = Arc::make_mut(&mut self.oracle);
        let judged = match done {
            Ok(Outcome::Done) => {
                oracle.acknowledge();
                Ok(())
            }
            Ok(Outcome::Refused) => {
                oracle.refuse();
                Ok(())
            }
            Ok(Outcome::Partly(contents)) => oracle.refuse_leaving(Some(contents)),
            Err(problem) => Err(problem),
        };
        judged.unwrap_or_else(|problem| self.object(problem.into(), None));
        self.note_crashes(sim, None);
        for Crash { image, oracle, op_step, kind } in self.crashes.take() {
            if let Err(fault) = self.examiner.examine::<S>(&image, &oracle) {
                self.place.op_step = op_step;
                self.object(fault, kind);
                break;
            }
        }
        self.violation.take().map_or(Ok(()), Err)?;
        self.check_rival()
    }

    /// Judges the run at its end.
    pub(crate) fn conclude(&mut self, judged: Result<(), Problem>) -> Result<(), Box<Violation>> {
        judged.unwrap_or_else(|problem| self.object(problem.into(), None));
        self.violation.take().map_or(Ok(()), Err)
    }

    /// Handles a step: first the visitor runs, then crash images are taken.
    pub(crate) fn stepped(&mut self, sim: &S::Medium, kind: StepKind) {
        if self.violation.is_some() {
            return;
        }
        self.place.op_step += 1;
        self.examiner.counts.steps += 1;
        match self.place.visitor.writes() {
            true => self.visit_by_rival(kind),
            false => self.visit(kind).unwrap_or_else(|problem| self.object(problem.into(), Some(kind))),
        }
        self.note_crashes(sim, Some(kind));
    }

    /// Collects the second writer's answer if there is one, and starts its next write if one is due.
    fn visit_by_rival(&mut self, kind: StepKind) {
        self.poll_rival();
        let Some(rival) = &mut self.rival else { return };
        self.visited |= rival.is_busy();
        let Some(store) = self.store.clone().filter(|_| self.place.visitor.comes(self.place.op_step, kind)) else {
            return;
        };
        if rival.is_busy() {
            return;
        }
        self.rival_value = rival.next_value();
        Arc::make_mut(&mut self.oracle).rival_begins(&self.rival_value);
        self.rival_oracle = Arc::clone(&self.oracle);
        rival.begin(store, self.place.op != Op::Clear);
        self.visited = true;
        self.examiner.counts.visits += 1;
        self.poll_rival();
    }

    fn poll_rival(&mut self) {
        let answer = self.rival.as_mut().filter(|rival| rival.is_busy()).and_then(Rival::poll);
        if let Some(answer) = answer {
            self.rival_answered(answer);
        }
    }

    fn visit(&mut self, kind: StepKind) -> Result<(), Problem> {
        let Scene { place, store, oracle, examiner, snapshots, .. } = self;
        let Some(store) = store.as_ref().filter(|_| place.visitor.comes(place.op_step, kind)) else { return Ok(()) };
        let oracle = Arc::make_mut(oracle);
        match (place.visitor, &place.op) {
            (Visitor::Deleter, Op::Delete(key)) => {
                // Whichever of the two deletes is first, both answers state that the key is gone.
                store.delete(key).map_err(refused("delete by a visitor"))?;
                oracle.saw(key, None)?;
            }
            (Visitor::Deleter, _) => return Ok(()),
            (Visitor::ScannerAt(_), _) => {
                let Some(found) = scanned(&**store)? else { return Ok(()) };
                for key in examiner.keys() {
                    oracle.saw(key, found.get(key).map(Vec::as_slice))?;
                }
            }
            _ => {
                let mut answered = false;
                for key in examiner.keys() {
                    let Some(value) = store.try_get(key).map_err(refused("get by a visitor"))? else { continue };
                    oracle.saw(key, value.as_deref())?;
                    answered = true;
                }
                // A visitor that would have to wait everywhere has seen nothing and is not counted.
                if !answered {
                    return Ok(());
                }
                snapshots.iter().try_for_each(|taken| taken.compare_lookups(&**store, examiner.keys()))?;
            }
        }
        self.visited = true;
        self.examiner.counts.visits += 1;
        Ok(())
    }

    fn note_crashes(&mut self, sim: &S::Medium, kind: Option<StepKind>) {
        if !self.explores || !self.visited {
            return;
        }
        let seed = self.place.seed ^ sim.step_count();
        for image in images_of(sim, self.end, self.images_per_step_max, seed) {
            self.note_crash(image, Arc::clone(&self.oracle), kind);
        }
    }

    fn note_crash(&mut self, image: ImageOf<S>, oracle: Arc<Oracle>, kind: Option<StepKind>) {
        let key = (image.hash(), oracle.fingerprint());
        if !self.examiner.knows(&image, &oracle) {
            self.crashes.offer(key, Crash { image, oracle, op_step: self.place.op_step, kind });
        }
    }

    fn object(&mut self, fault: Fault, kind: Option<StepKind>) {
        let Fault { images, problem } = fault;
        let violation = Violation { kind, images, problem, ..self.place.clone() };
        self.violation.get_or_insert_with(|| Box::new(violation));
    }
}

/// Returns the images that a crash at this moment may leave.
fn images_of<C: Crashable>(sim: &C, end: End, count_max: usize, seed: u64) -> Vec<C::Image> {
    match end {
        End::PowerLoss => sim.images(count_max, seed),
        End::Kill => sim.killed().into_iter().collect(),
    }
}
