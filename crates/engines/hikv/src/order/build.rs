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
//! tree has what the hash index has. Until then no item that was collected is retired. Changes that took a ticket when
//! everything was collected find what they expect, and need no delta.
//!
//! # Why a clean image will do
//! The image is asked for when every writer takes tickets, under the lock under which the first change gives it up. If it
//! is named then, nothing was changed before, and every change from then on is in the queues. Its positions are copied at
//! once, and keys that are not in order are collected after all.

mod ending;
mod step;

use std::mem;
use std::sync::Arc;

use epoch::Grace;
use index::bplus_tree::{BPlusTree, Loader, Part};
use pmem::Dram;

use super::collect::{Collected, Entries, Plan};
use engine::Error;

/// How the tree comes about, and how far it is.
#[derive(Debug)]
pub(super) struct Build<D: Dram> {
    stage: Stage<D>,
    /// Counts builds: what a thread brings to one that was abandoned is not wanted.
    number: u64,
    /// Steps, one after the other, that found nothing to do but to wait.
    wait_count: u32,
    /// Why the last order fell, until a caller is told.
    failure: Option<Error>,
}

#[derive(Debug)]
enum Stage<D: Dram> {
    /// Nobody asked, or the tree is there.
    Idle,
    /// Keys are being deleted; with the number of threads that delete, and whether to start over.
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
