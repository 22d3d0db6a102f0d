//! Builds the ordered index while keys are read and written, by sorting the keys and bulk-loading the tree. (The paper,
//! section 3.4.3, inserts key by key.)
//!
//! | stage | action | until |
//! |---|---|---|
//! | settling | the phase is off | writers with tickets of an earlier phase are done; the queues are empty |
//! | listening | phase is building: writers take tickets, drainers fill the delta | writers without tickets are done |
//! | collecting | partitions are read; each key goes to one of many parts | all partitions are read |
//! | loading | parts are sorted and loaded | all parts are loaded |
//! | merging | the delta is applied to the tree | all writes before the end of collecting are applied |
//!
//! In the stage collecting, the first bytes and the position of each key go to a part by sampled splitters; the stage
//! is left out if a clean image has the order. At the end of merging the phase becomes ready, under the tree's write
//! lock.
//!
//! Any number of threads work on the build in steps: they take partitions and parts one by one, and the other stages
//! are short.
//!
//! # Why the delta makes the tree complete
//! A key that is not written during the build is collected once. For a key that is written, every change is in the
//! delta, in order. Each change of the delta sets the tree's entry to the change's result, whatever the tree holds for
//! the key. So after the last change the tree holds the same as the hash index. Until then no collected item is
//! retired. Changes that took a ticket after everything was collected find the entries that they expect, and need no
//! delta.
//!
//! # Why a clean image is sufficient
//! The image is read once every writer takes tickets, under the lock under which the first change invalidates the
//! image. If the image is named then, nothing was changed before, and every later change is in the queues. The
//! positions are copied immediately. If keys turn out not to be in order, the keys are collected instead.

mod ending;
mod step;

use std::mem;
use std::sync::Arc;

use epoch::Grace;
use index::bplus_tree::{BPlusTree, Loader, Part};
use parking_lot::Mutex;
use pmem::Dram;

use super::collect::{Collected, Entries, Plan};
use super::progress::BuildProgress;
use super::queues::Queues;
use super::source::Source;
use super::tree::Tree;
use engine::Error;

/// The builder of a store's tree.
#[derive(Debug)]
pub(super) struct Builder<D: Dram> {
    build: Mutex<Build<D>>,
    progress: BuildProgress,
    dram: D,
}

/// The parts of a store that a build works with.
pub(super) struct Site<'a, M, D: Dram> {
    pub(super) source: Source<'a, M, D>,
    pub(super) queues: &'a Queues,
    pub(super) tree: &'a Tree<D>,
}

impl<M, D: Dram> Clone for Site<'_, M, D> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M, D: Dram> Copy for Site<'_, M, D> {}

impl<D: Dram> Builder<D> {
    pub(super) fn new(dram: D) -> Builder<D> {
        Builder { build: Mutex::new(Build::default()), progress: BuildProgress::default(), dram }
    }

    /// Returns true while the tree is being built.
    pub(super) fn is_at_work(&self) -> bool {
        self.build.lock().is_asked_for()
    }

    /// Returns the finished steps of the build, and all steps.
    pub(super) fn progress(&self) -> (u64, u64) {
        self.progress.now()
    }
}

/// The state of the tree's build.
#[derive(Debug)]
struct Build<D: Dram> {
    stage: Stage<D>,
    /// Counts builds: the result of a thread for an abandoned build is discarded.
    number: u64,
    /// Consecutive steps that could only wait.
    wait_count: u32,
    /// The reason why the last tree was dropped, until it is returned to a caller.
    failure: Option<Error>,
}

#[derive(Debug)]
enum Stage<D: Dram> {
    /// No caller has requested order, or the tree is there.
    Idle,
    /// Keys are being deleted: the number of threads that delete, and true if the build starts again afterwards.
    Suspended(usize, bool),
    Settling(Grace),
    Listening(Grace),
    Collecting(Collecting),
    Loading(Loading<D>),
    /// Holds the queues' tails at the end of collecting.
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
    /// Other threads do the remaining work.
    Wait,
}

impl<D: Dram> Default for Build<D> {
    fn default() -> Build<D> {
        Build { stage: Stage::Idle, number: 0, wait_count: 0, failure: None }
    }
}

impl<D: Dram> Build<D> {
    /// Returns true while the tree is being built.
    fn is_asked_for(&self) -> bool {
        !matches!(self.stage, Stage::Idle | Stage::Suspended(_, false))
    }

    /// Returns true if a step may do a piece of the build. Nothing is left to do while the build is suspended: the
    /// thread that deletes the keys may itself call [`Builder::step`] until there is no more work.
    fn has_work(&self) -> bool {
        !matches!(self.stage, Stage::Idle | Stage::Suspended(..))
    }

    /// Returns the number of consecutive steps before this one that could only wait.
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
    fn new(dram: D, tails: Box<[u64]>, plan: Arc<Plan>, parts: Vec<Entries>, is_from_image: bool) -> Loading<D> {
        let loaded = parts.iter().map(|_| None).collect();
        let loader = Arc::new(Loader::new(dram));
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
