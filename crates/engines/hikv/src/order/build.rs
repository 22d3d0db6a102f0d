//! Building the ordered index while points are served and written: by sorting, and loading the tree in one go (paper,
//! section 3.4.3, which inserts key by key).
//!
//! | stage | what happens | until |
//! |---|---|---|
//! | settling | the phase is off | writers who took tickets in an earlier phase are done, and the queues empty |
//! | listening | the phase is building: writers take tickets, drainers fill the delta | writers who took none are done |
//! | collecting, unless a clean image has the order | partitions are read; each key's first bytes and position go to one of many parts, by splitters that were sampled | all partitions are read |
//! | loading | parts are sorted and loaded | all parts are loaded |
//! | merging | the delta is applied to the tree | whatever was written before the last partition was read is applied; under the tree's write lock the phase becomes ready |
//!
//! Any number of threads work at it, a step at a time: partitions and parts are taken one by one, the rest is short.
//!
//! # Why the delta makes it whole
//! A key that nobody writes meanwhile is collected once. Of one that is written every change is in the delta, in order,
//! and the delta's changes are applied as what they lead to, whatever the tree has for the key: after the last of them the
//! tree has what the hash index has. Until then no item that was collected is retired. Changes that took their ticket when
//! everything was collected find what they expect, and need no delta.
//!
//! # Why a clean image will do
//! It is asked for when every writer takes tickets, under the lock under which the first change gives it up. If it is named
//! then, nothing was changed before, and every change from then on is in the queues. Its positions are copied at once, and
//! keys that are not in their order are collected after all.

mod ending;

use std::mem;
use std::sync::Arc;

use epoch::Grace;
use index::bplus_tree::{BPlusTree, Loader, Part};
use pmem::{Backoff, Dram, Medium};

use super::collect::{Collected, Entries, Plan};
use super::merge;
use super::ordered::{Ordered, Phase};
use super::sorted;
use crate::snapshots::Disposal;
use crate::{HiKv, Memory};
use engine::{Error, Progress, Wanted};

/// How the tree comes about, and how far it is.
#[derive(Debug)]
pub(super) struct Build<D: Dram> {
    stage: Stage<D>,
    /// Counts builds: what a thread brings to one that was abandoned is not wanted.
    number: u64,
    /// Steps, one after the other, that found nothing to do but to wait.
    wait_count: u32,
    /// Why the last order fell, until somebody is told.
    failure: Option<Error>,
}

#[derive(Debug)]
enum Stage<D: Dram> {
    /// Nobody asked, or the tree is there.
    Idle,
    /// Keys are being deleted; with the number of those who do, and whether to start over.
    Suspended(usize, bool),
    Settling(Grace),
    Listening(Grace),
    Collecting(Collecting),
    Loading(Loading<D>),
    /// With the queues' tails when everything was collected.
    Merging(Box<BPlusTree<D>>, Box<[u64]>),
}

#[derive(Debug)]
struct Collecting {
    plan: Arc<Plan>,
    next_partition: usize,
    done_count: usize,
    parts: Vec<Vec<Collected>>,
}

#[derive(Debug)]
struct Loading<D: Dram> {
    plan: Arc<Plan>,
    loader: Arc<Loader<D>>,
    is_from_image: bool,
    next_part: usize,
    parts: Vec<Entries>,
    loaded: Vec<Option<Part>>,
    done_count: usize,
    tails: Box<[u64]>,
}

/// A piece of work that is done without the build's lock.
enum Task<D: Dram> {
    Drain,
    Collect(Arc<Plan>, usize),
    Load(Arc<Plan>, Arc<Loader<D>>, usize, Entries),
    /// Others are at it.
    Wait,
}

impl<D: Dram> Default for Build<D> {
    fn default() -> Build<D> {
        Build { stage: Stage::Idle, number: 0, wait_count: 0, failure: None }
    }
}

impl<D: Dram> Build<D> {
    /// True while the tree is being built.
    pub(super) fn is_asked_for(&self) -> bool {
        !matches!(self.stage, Stage::Idle | Stage::Suspended(_, false))
    }

    /// How many steps before this one could only wait.
    fn count_wait(&mut self, task: &Task<D>) -> u32 {
        let waits = matches!(task, Task::Wait | Task::Drain);
        let count = if waits { self.wait_count.saturating_add(1) } else { 0 };
        mem::replace(&mut self.wait_count, count)
    }

    fn abandon(&mut self, stage: Stage<D>) {
        self.number += 1;
        self.stage = stage;
    }
}

impl<D: Memory> Ordered<D> {
    /// Has the tree built, unless it is there or being built. An error tells why an earlier one fell, once.
    pub(super) fn ask_for_order(&self) -> Result<(), Error> {
        let mut build = self.build.lock();
        if let Some(error) = build.failure.take() {
            return Err(error);
        }
        if matches!(build.stage, Stage::Idle) && self.phase() == Phase::Off {
            build.abandon(Stage::Settling(Grace::start()));
            self.progress.begin(0, 0);
            self.ask(Wanted::All);
        }
        Ok(())
    }

    /// Does a piece of the build.
    pub(super) fn build_step<M: Medium>(&self, engine: &HiKv<M, D>) -> Result<Progress, Error> {
        let (number, wait_count, task) = {
            let mut build = self.build.lock();
            match self.next_task(engine, &mut build) {
                Ok(Some(task)) => (build.number, build.count_wait(&task), task),
                Ok(None) if build.is_asked_for() => return Ok(Progress::More),
                Ok(None) => return Ok(Progress::Idle),
                Err(error) => {
                    let number = build.number;
                    drop(build);
                    self.abort_build(engine.disposal(), number, error);
                    return Ok(Progress::Idle);
                }
            }
        };
        match self.run(engine, number, wait_count, task) {
            Ok(()) => Ok(Progress::More),
            Err(error) => {
                self.abort_build(engine.disposal(), number, error);
                Ok(Progress::Idle)
            }
        }
    }

    /// What to do next; `None` if that was done here, or there is nothing.
    fn next_task<M: Medium>(&self, engine: &HiKv<M, D>, build: &mut Build<D>) -> Result<Option<Task<D>>, Error> {
        match &mut build.stage {
            Stage::Idle | Stage::Suspended(..) => Ok(None),
            Stage::Settling(grace) => Ok(self.settle(*grace, build)),
            Stage::Listening(grace) if !grace.is_over() => Ok(Some(Task::Wait)),
            Stage::Listening(_) => self.start(engine).map(|stage| {
                build.stage = stage;
                None
            }),
            Stage::Collecting(collecting) => Ok(Some(collecting.next(engine.index.partition_count()))),
            Stage::Loading(loading) => Ok(Some(loading.next())),
            Stage::Merging(_, tails) if self.delta.len() <= merge::STEP_COUNT as u64 && self.is_behind(tails) => {
                Ok(Some(Task::Drain))
            }
            Stage::Merging(..) => self.merge(engine.disposal(), build).map(|()| None),
        }
    }

    /// What comes after listening.
    fn start<M: Medium>(&self, engine: &HiKv<M, D>) -> Result<Stage<D>, Error> {
        let sorted = engine.image.sorted(&engine.medium);
        if let Some((plan, parts)) = sorted.and_then(|sorted| sorted::divide(&engine.medium, &sorted).ok()) {
            self.progress.begin(plan.estimated_count, 1);
            return Ok(Stage::Loading(Loading::new(self, Arc::new(plan), parts, true)));
        }
        let plan = Arc::new(Plan::sample(engine)?);
        self.progress.begin(plan.estimated_count, 2);
        let parts = (0..plan.part_count()).map(|_| Vec::new()).collect();
        Ok(Stage::Collecting(Collecting { plan, next_partition: 0, done_count: 0, parts }))
    }

    /// True while a ticket before `tails` is not applied.
    fn is_behind(&self, tails: &[u64]) -> bool {
        self.queues.iter().zip(tails).any(|(queue, tail)| queue.ring.head() < *tail)
    }

    fn settle(&self, grace: Grace, build: &mut Build<D>) -> Option<Task<D>> {
        if !grace.is_over() {
            return Some(Task::Wait);
        }
        if self.queues.iter().any(|queue| queue.ring.len() > 0) {
            return Some(Task::Drain);
        }
        let _tree = self.tree.write();
        self.set_phase(Phase::Building);
        build.stage = Stage::Listening(Grace::start());
        None
    }

    fn run<M: Medium>(&self, engine: &HiKv<M, D>, number: u64, wait_count: u32, task: Task<D>) -> Result<(), Error> {
        match task {
            Task::Wait => Backoff::after(wait_count).relax(),
            Task::Drain => {
                if self.drain_all(engine.disposal())? == 0 {
                    Backoff::after(wait_count).relax();
                }
            }
            Task::Collect(plan, partition) => {
                let parts = plan.collect(engine, partition, self.progress.done())?;
                self.collected(engine, number, parts);
            }
            Task::Load(plan, loader, part, entries) => {
                let _pin = epoch::pin();
                // An abandoned build's items may have been retired before the pin.
                if self.build.lock().number == number {
                    let loaded = plan.load(&engine.medium, &loader, part, entries, self.progress.done());
                    drop(loader);
                    match loaded {
                        Ok(loaded) => self.loaded(number, part, loaded)?,
                        Err(error) => self.not_loaded(engine, number, error)?,
                    }
                }
            }
        }
        Ok(())
    }

    fn collected<M: Medium>(&self, engine: &HiKv<M, D>, number: u64, parts: Vec<Vec<Collected>>) {
        let mut build = self.build.lock();
        let Build { stage: Stage::Collecting(collecting), number: now, .. } = &mut *build else { return };
        if *now != number {
            return;
        }
        for (all, more) in collecting.parts.iter_mut().zip(parts) {
            all.extend(more);
        }
        collecting.done_count += 1;
        if collecting.done_count == engine.index.partition_count() {
            let (plan, parts) = (Arc::clone(&collecting.plan), std::mem::take(&mut collecting.parts));
            let count: usize = parts.iter().map(Vec::len).sum();
            self.progress.collected(count as u64);
            let parts = parts.into_iter().map(Entries::Collected).collect();
            build.stage = Stage::Loading(Loading::new(self, plan, parts, false));
        }
    }

    fn loaded(&self, number: u64, part: usize, loaded: Part) -> Result<(), Error> {
        let mut build = self.build.lock();
        let Build { stage: Stage::Loading(loading), number: now, .. } = &mut *build else { return Ok(()) };
        if *now != number {
            return Ok(());
        }
        loading.loaded[part] = Some(loaded);
        loading.done_count += 1;
        if loading.done_count == loading.loaded.len() {
            let Stage::Loading(loading) = std::mem::replace(&mut build.stage, Stage::Idle) else { return Ok(()) };
            let parts = loading.loaded.into_iter().flatten().collect();
            let loader = Arc::into_inner(loading.loader).expect("every part was loaded, and its loader let go");
            let tree = loader.finish(parts).map_err(|error| Error::NoMemory { wanted_bytes: error.wanted_bytes })?;
            build.stage = Stage::Merging(Box::new(tree), loading.tails);
        }
        Ok(())
    }

    /// What came from an image is collected after all; anything else is the build's failure.
    fn not_loaded<M: Medium>(&self, engine: &HiKv<M, D>, number: u64, error: Error) -> Result<(), Error> {
        let mut build = self.build.lock();
        if build.number != number {
            return Ok(());
        }
        match &build.stage {
            Stage::Loading(loading) if loading.is_from_image => {
                engine.image.distrust_order();
                build.abandon(Stage::Listening(Grace::start()));
                Ok(())
            }
            _ => Err(error),
        }
    }

    /// Merges a piece of the delta; the last one while drainers wait.
    fn merge<M: Medium>(&self, disposal: Disposal<'_, M, D>, build: &mut Build<D>) -> Result<(), Error> {
        let Stage::Merging(tree, _) = &build.stage else { return Ok(()) };
        if self.delta.len() > merge::STEP_COUNT as u64 {
            return merge::apply(disposal, tree, self.delta.take(merge::STEP_COUNT));
        }
        let mut slot = self.tree.write();
        merge::apply(disposal, tree, self.delta.take(usize::MAX))?;
        if let Stage::Merging(tree, _) = std::mem::replace(&mut build.stage, Stage::Idle) {
            *slot = Some(*tree);
            self.set_phase(Phase::Ready);
        }
        Ok(())
    }
}

impl Collecting {
    fn next<D: Dram>(&mut self, partition_count: usize) -> Task<D> {
        if self.next_partition == partition_count {
            return Task::Wait;
        }
        self.next_partition += 1;
        Task::Collect(Arc::clone(&self.plan), self.next_partition - 1)
    }
}

impl<D: Dram + Clone> Loading<D> {
    fn new(order: &Ordered<D>, plan: Arc<Plan>, parts: Vec<Entries>, is_from_image: bool) -> Loading<D> {
        let loaded = parts.iter().map(|_| None).collect();
        let loader = Arc::new(Loader::new(order.dram.clone()));
        let tails = order.queues.iter().map(|queue| queue.ring.tail()).collect();
        Loading { plan, loader, is_from_image, next_part: 0, parts, loaded, done_count: 0, tails }
    }
}

impl<D: Dram> Loading<D> {
    fn next(&mut self) -> Task<D> {
        let empty = || Entries::Sorted(Vec::new());
        let Some(entries) = self.parts.get_mut(self.next_part).map(|part| mem::replace(part, empty())) else {
            return Task::Wait;
        };
        self.next_part += 1;
        Task::Load(Arc::clone(&self.plan), Arc::clone(&self.loader), self.next_part - 1, entries)
    }
}
