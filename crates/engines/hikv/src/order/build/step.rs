//! The steps of the build.

use std::sync::Arc;

use epoch::Grace;
use index::bplus_tree::Part;
use pmem::{Backoff, Medium};

use super::{Build, Collecting, Loading, Stage, Task};
use crate::order::collect::{Collected, Entries, Plan};
use crate::order::ordered::{Ordered, Phase};
use crate::order::{merge, sorted};
use crate::snapshots::Disposal;
use crate::{HiKv, Memory};
use engine::{Error, Progress, WantedThreads};

impl<D: Memory> Ordered<D> {
    /// Starts building the tree, unless it is there or being built. Returns once the error that lost an earlier tree.
    pub(in crate::order) fn ask_for_order(&self) -> Result<(), Error> {
        let mut build = self.build.lock();
        if let Some(error) = build.failure.take() {
            return Err(error);
        }
        if matches!(build.stage, Stage::Idle) && self.phase() == Phase::Off {
            build.abandon(Stage::Settling(Grace::start()));
            self.progress.begin(0, 0);
            self.ask(WantedThreads::All);
        }
        Ok(())
    }

    /// Does a piece of the build.
    pub(in crate::order) fn build_step<M: Medium>(&self, engine: &HiKv<M, D>) -> Result<Progress, Error> {
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

    /// Returns the next task; `None` if the work was done here, or there is none.
    fn next_task<M: Medium>(&self, engine: &HiKv<M, D>, build: &mut Build<D>) -> Result<Option<Task<D>>, Error> {
        match &mut build.stage {
            Stage::Idle | Stage::Suspended(..) => Ok(None),
            Stage::Settling(grace) => Ok(self.settle(*grace, build)),
            Stage::Listening(grace) if !grace.is_over() => Ok(Some(Task::Wait)),
            Stage::Listening(_) => self.start(engine).map(|stage| {
                build.stage = stage;
                None
            }),
            Stage::Collecting(collecting) => Ok(Some(collecting.next(engine.reader.index().partition_count()))),
            Stage::Loading(loading) => Ok(Some(loading.next())),
            Stage::Merging(_, tails) if self.delta.len() <= merge::STEP_COUNT as u64 && self.is_behind(tails) => {
                Ok(Some(Task::Drain))
            }
            Stage::Merging(..) => self.merge(engine.disposal(), build).map(|()| None),
        }
    }

    /// Returns the stage after listening.
    fn start<M: Medium>(&self, engine: &HiKv<M, D>) -> Result<Stage<D>, Error> {
        let sorted = engine.image.sorted(engine.reader.medium());
        if let Some((plan, parts)) = sorted.and_then(|sorted| sorted::divide(engine.reader.medium(), &sorted).ok()) {
            self.progress.begin(plan.estimated_count, 1);
            return Ok(Stage::Loading(self.loading(Arc::new(plan), parts, true)));
        }
        let plan = Arc::new(Plan::sample(engine.reader.index(), engine.reader.medium())?);
        self.progress.begin(plan.estimated_count, 2);
        let parts = (0..plan.part_count()).map(|_| Vec::new()).collect();
        Ok(Stage::Collecting(Collecting { plan, next_partition: 0, done_count: 0, parts }))
    }

    fn loading(&self, plan: Arc<Plan>, parts: Vec<Entries>, is_from_image: bool) -> Loading<D> {
        let tails = self.queues.iter().map(|queue| queue.ring.tail()).collect();
        Loading::new(self.dram.clone(), tails, plan, parts, is_from_image)
    }

    /// Returns true while a ticket before `tails` is not applied.
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
                let parts =
                    plan.collect(engine.reader.index(), engine.reader.medium(), partition, self.progress.done())?;
                self.collected(engine, number, parts);
            }
            Task::Load(plan, loader, part, entries) => {
                let _pin = epoch::pin();
                // Items of an abandoned build may have been retired before the pin.
                if self.build.lock().number == number {
                    let loaded = plan.load(engine.reader.medium(), &loader, part, entries, self.progress.done());
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
        if collecting.done_count == engine.reader.index().partition_count() {
            let (plan, parts) = (Arc::clone(&collecting.plan), std::mem::take(&mut collecting.parts));
            let count: usize = parts.iter().map(Vec::len).sum();
            self.progress.collected(count as u64);
            let parts = parts.into_iter().map(Entries::Collected).collect();
            build.stage = Stage::Loading(self.loading(plan, parts, false));
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

    /// Collects the keys instead if they came from an image; otherwise returns the build's failure.
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

    /// Merges a piece of the delta; the last piece under the tree's write lock, while drainers wait.
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
