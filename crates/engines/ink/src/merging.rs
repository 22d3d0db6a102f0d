//! Background merges of nodes in which deletes have left few pairs. A pass goes through the tree (`pbtree::Pass`),
//! one parent a step, once enough keys were deleted since the last pass.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use engine::{Error, Expectation, Progress, wait_for_readers};
use parking_lot::Mutex;
use pbtree::{FreeImmediately, Merged, Next, Pass, Tree};
use pmem::{Dram, Medium};

use crate::error::from_tree;

/// The pause before the next attempt while a walk prevents merges.
const PAUSE: Duration = Duration::from_millis(100);

/// The state of background merges.
pub(crate) struct Merging {
    expectation: Expectation,
    under_way: Mutex<Option<UnderWay>>,
    /// The number of deleted keys that starts a pass.
    due_count: AtomicU64,
    merged_count: AtomicU64,
}

/// A pass in progress.
#[derive(Default)]
struct UnderWay {
    pass: Pass,
    from: Option<Vec<u8>>,
}

impl Merging {
    /// Creates the state for a tree of nodes of this order.
    pub(crate) fn of(order: usize) -> Merging {
        Merging {
            expectation: Expectation::default(),
            under_way: Mutex::default(),
            due_count: AtomicU64::new(order as u64),
            merged_count: AtomicU64::new(0),
        }
    }

    /// Returns the number of merges since the opening, including removed roots.
    pub(crate) fn merged_count(&self) -> u64 {
        self.merged_count.load(Ordering::Relaxed)
    }

    /// Returns whether a step is wanted and how long the background may sleep, as for the reaper.
    pub(crate) fn expectation(&self) -> &Expectation {
        &self.expectation
    }

    /// Requests a pass once enough keys were deleted.
    #[inline]
    pub(crate) fn expect<M: Medium, D: Dram>(&self, tree: &Tree<M, D, FreeImmediately>) {
        if self.is_due(tree) {
            self.expectation.expect();
        }
    }

    fn is_due<M: Medium, D: Dram>(&self, tree: &Tree<M, D, FreeImmediately>) -> bool {
        tree.vacated_count() >= self.due_count.load(Ordering::Relaxed)
    }

    /// Takes one step: merges below one parent.
    pub(crate) fn step<M: Medium, D: Dram>(&self, tree: &Tree<M, D, FreeImmediately>) -> Result<Progress, Error> {
        let Some(mut place) = self.under_way.try_lock() else { return Ok(Progress::Idle) };
        if place.is_none() {
            if !self.expectation.begin() {
                return Ok(Progress::Idle);
            }
            if !self.is_due(tree) {
                self.expectation.end();
                return Ok(Progress::Idle);
            }
            tree.take_vacated();
            *place = Some(UnderWay::default());
        }
        let under_way = place.as_mut().expect("it was just begun");
        let progress = self.merge_part(tree, under_way);
        if !matches!(progress, Ok(Progress::More | Progress::Rest(_))) {
            let due_count = under_way.pass.due_count(tree.options().order);
            self.due_count.store(due_count, Ordering::Relaxed);
            *place = None;
            self.expectation.end();
        }
        progress
    }

    /// Runs a full pass for a writer that found the region full, if any key was deleted since the last pass. Returns
    /// false if there was no pass, or if a walk prevents it for long.
    #[cold]
    pub(crate) fn run_for_space<M: Medium, D: Dram>(&self, tree: &Tree<M, D, FreeImmediately>) -> Result<bool, Error> {
        if tree.take_vacated() == 0 || !tree.heap().is_swept() {
            return Ok(false);
        }
        let (mut under_way, mut progress) = (UnderWay::default(), Ok(Progress::More));
        wait_for_readers(|| {
            progress = self.merge_part(tree, &mut under_way);
            while matches!(progress, Ok(Progress::More)) {
                progress = self.merge_part(tree, &mut under_way);
            }
            matches!(progress, Ok(Progress::Rest(_)))
        });
        Ok(progress? == Progress::Idle)
    }

    /// Takes one step of a pass. Returns `Idle` at the end of the pass.
    fn merge_part<M: Medium, D: Dram>(
        &self,
        tree: &Tree<M, D, FreeImmediately>,
        UnderWay { pass, from }: &mut UnderWay,
    ) -> Result<Progress, Error> {
        loop {
            let mut behind = None;
            let ends_at = &mut |key: &[u8]| behind = Some(key.to_vec());
            let merged =
                tree.merge(epoch::thread_index(), pass.level(), from.as_deref(), ends_at).map_err(from_tree)?;
            if merged == Merged::Fewer {
                self.merged_count.fetch_add(1, Ordering::Relaxed);
            }
            match pass.after(merged) {
                Next::Here => continue,
                Next::Behind => *from = behind,
                Next::First => *from = None,
                Next::Later => return Ok(Progress::Rest(PAUSE)),
                Next::Over => return Ok(Progress::Idle),
            }
            return Ok(Progress::More);
        }
    }
}
