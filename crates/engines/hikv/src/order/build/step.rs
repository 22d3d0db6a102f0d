//! The steps of the build.

use std::sync::Arc;

use epoch::Grace;
use index::bplus_tree::Part;
use pmem::{Backoff, Medium};

use super::{Build, Builder, Collecting, Loading, Site, Stage, Task};
use crate::memory::Memory;
use crate::order::collect::{Collected, Entries, Plan};
use crate::order::queues::Queues;
use crate::order::tree::{Phase, Tree};
use crate::order::{merge, sorted};
use engine::{Error, Progress, WantedThreads};

impl<D: Memory> Builder<D> {
    /// Starts building the tree, unless it is there or being built. Returns once the error that lost an earlier tree.
    pub(in crate::order) fn request(&self, tree: &Tree<D>, queues: &Queues) -> Result<(), Error> {
        let mut build = self.build.lock();
        if let Some(error) = build.failure.take() {
            return Err(error);
        }
        if matches!(build.stage, Stage::Idle) && tree.phase() == Phase::Off {
            build.abandon(Stage::Settling(Grace::start()));
            self.progress.begin(0, 0);
            queues.ask(WantedThreads::All);
        }
        Ok(())
    }

    /// Does a piece of the build; `drain` applies changes of every queue, and returns their number.
    pub(in crate::order) fn step<M: Medium>(
        &self,
        site: Site<'_, M, D>,
        drain: impl FnOnce() -> Result<usize, Error>,
    ) -> Result<Progress, Error> {
        let (number, wait_count, task) = {
            let mut build = self.build.lock();
            match self.next_task(site, &mut build) {
                Ok(Some(task)) => (build.number, build.count_wait(&task), task),
                Ok(None) if build.has_work() => return Ok(Progress::More),
                Ok(None) => return Ok(Progress::Idle),
                Err(error) => {
                    let number = build.number;
                    drop(build);
                    self.abort_build(site.tree, site.source.disposal, number, error);
                    return Ok(Progress::Idle);
                }
            }
        };
        match self.run(site, number, wait_count, task, drain) {
            Ok(()) => Ok(Progress::More),
            Err(error) => {
                self.abort_build(site.tree, site.source.disposal, number, error);
                Ok(Progress::Idle)
            }
        }
    }

    /// Returns the next task; `None` if the work was done here, or there is none.
    fn next_task<M: Medium>(&self, site: Site<'_, M, D>, build: &mut Build<D>) -> Result<Option<Task<D>>, Error> {
        match &mut build.stage {
            Stage::Idle | Stage::Suspended(..) => Ok(None),
            Stage::Settling(grace) => Ok(settle(site, *grace, build)),
            Stage::Listening(grace) if !grace.is_over() => Ok(Some(Task::Wait)),
            Stage::Listening(_) => self.start(site).map(|stage| {
                build.stage = stage;
                None
            }),
            Stage::Collecting(collecting) => Ok(Some(collecting.next(site.source.index.partition_count()))),
            Stage::Loading(loading) => Ok(Some(loading.next())),
            Stage::Merging(_, tails)
                if site.tree.delta_count() <= merge::STEP_COUNT as u64 && site.queues.is_behind(tails) =>
            {
                Ok(Some(Task::Drain))
            }
            Stage::Merging(..) => merge(site, build).map(|()| None),
        }
    }

    /// Returns the stage after listening.
    fn start<M: Medium>(&self, site: Site<'_, M, D>) -> Result<Stage<D>, Error> {
        let sorted = site.source.image.sorted(site.source.disposal.medium());
        if let Some((plan, parts)) =
            sorted.and_then(|sorted| sorted::divide(site.source.disposal.medium(), &sorted).ok())
        {
            self.progress.begin(plan.estimated_count, 1);
            return Ok(Stage::Loading(self.loading(site.queues, Arc::new(plan), parts, true)));
        }
        let plan = Arc::new(Plan::sample(site.source.index, site.source.disposal.medium())?);
        self.progress.begin(plan.estimated_count, 2);
        let parts = (0..plan.part_count()).map(|_| Vec::new()).collect();
        Ok(Stage::Collecting(Collecting { plan, next_partition: 0, done_count: 0, parts }))
    }

    fn loading(&self, queues: &Queues, plan: Arc<Plan>, parts: Vec<Entries>, is_from_image: bool) -> Loading<D> {
        Loading::new(self.dram.clone(), queues.tails(), plan, parts, is_from_image)
    }

    fn run<M: Medium>(
        &self,
        site: Site<'_, M, D>,
        number: u64,
        wait_count: u32,
        task: Task<D>,
        drain: impl FnOnce() -> Result<usize, Error>,
    ) -> Result<(), Error> {
        match task {
            Task::Wait => Backoff::after(wait_count).relax(),
            Task::Drain => {
                if drain()? == 0 {
                    Backoff::after(wait_count).relax();
                }
            }
            Task::Collect(plan, partition) => {
                let parts =
                    plan.collect(site.source.index, site.source.disposal.medium(), partition, self.progress.done())?;
                self.collected(site, number, parts);
            }
            Task::Load(plan, loader, part, entries) => {
                let _pin = epoch::pin();
                // Items of an abandoned build may have been retired before the pin.
                if self.build.lock().number == number {
                    let loaded = plan.load(site.source.disposal.medium(), &loader, part, entries, self.progress.done());
                    drop(loader);
                    match loaded {
                        Ok(loaded) => self.loaded(number, part, loaded)?,
                        Err(error) => self.not_loaded(site, number, error)?,
                    }
                }
            }
        }
        Ok(())
    }

    fn collected<M: Medium>(&self, site: Site<'_, M, D>, number: u64, parts: Vec<Vec<Collected>>) {
        let mut build = self.build.lock();
        let Build { stage: Stage::Collecting(collecting), number: now, .. } = &mut *build else { return };
        if *now != number {
            return;
        }
        for (all, more) in collecting.parts.iter_mut().zip(parts) {
            all.extend(more);
        }
        collecting.done_count += 1;
        if collecting.done_count == site.source.index.partition_count() {
            let (plan, parts) = (Arc::clone(&collecting.plan), std::mem::take(&mut collecting.parts));
            let count: usize = parts.iter().map(Vec::len).sum();
            self.progress.collected(count as u64);
            let parts = parts.into_iter().map(Entries::Collected).collect();
            build.stage = Stage::Loading(self.loading(site.queues, plan, parts, false));
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
    fn not_loaded<M: Medium>(&self, site: Site<'_, M, D>, number: u64, error: Error) -> Result<(), Error> {
        let mut build = self.build.lock();
        if build.number != number {
            return Ok(());
        }
        match &build.stage {
            Stage::Loading(loading) if loading.is_from_image => {
                site.source.image.mark_unordered();
                build.abandon(Stage::Listening(Grace::start()));
                Ok(())
            }
            _ => Err(error),
        }
    }
}

/// Begins the phase of building, once no earlier writer and no change is left.
fn settle<M: Medium, D: Memory>(site: Site<'_, M, D>, grace: Grace, build: &mut Build<D>) -> Option<Task<D>> {
    if !grace.is_over() {
        return Some(Task::Wait);
    }
    if site.queues.all().iter().any(|queue| queue.ring.len() > 0) {
        return Some(Task::Drain);
    }
    site.tree.begin();
    build.stage = Stage::Listening(Grace::start());
    None
}

/// Merges a piece of the delta; the last piece under the tree's write lock, while drainers wait.
fn merge<M: Medium, D: Memory>(site: Site<'_, M, D>, build: &mut Build<D>) -> Result<(), Error> {
    let (tree, disposal) = (site.tree, site.source.disposal);
    let Stage::Merging(loaded, _) = &build.stage else { return Ok(()) };
    if tree.delta_count() > merge::STEP_COUNT as u64 {
        return tree.merge(disposal, loaded, merge::STEP_COUNT);
    }
    let slot = tree.lock();
    tree.merge(disposal, loaded, usize::MAX)?;
    if let Stage::Merging(loaded, _) = std::mem::replace(&mut build.stage, Stage::Idle) {
        tree.open(slot, *loaded);
    }
    Ok(())
}
