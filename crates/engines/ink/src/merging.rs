//! Merges of what deletes leave low, in the background: a pass goes through the tree's parents, level by level, one a step, when so many keys
//! were deleted since the last one that another is worth the walk.
//!
//! A pass that merged parents is followed by another one: their children, which had no neighbours before, have some then.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use engine::{Error, Expectation, Progress};
use parking_lot::Mutex;
use pbtree::Merged;
use pmem::{Dram, Medium};

use crate::Ink;
use crate::error::told;

/// A pass is worth it when one key of so many was deleted.
const DELETED_SHARE: u64 = 8;
/// While walks keep merges away, the next try comes after this.
const PAUSE: Duration = Duration::from_millis(100);

/// What is known of merges.
pub(crate) struct Merging {
    expectation: Expectation,
    pass: Mutex<Option<Pass>>,
    /// Deleted keys from which on a pass is worth it.
    due_count: AtomicU64,
    merged_count: AtomicU64,
}

/// A pass under way.
struct Pass {
    level: u8,
    from: Option<Vec<u8>>,
    /// Pairs that it came by in leaves.
    pair_count: u64,
    has_merged_parents: bool,
}

impl Pass {
    const START: Pass = Pass { level: 1, from: None, pair_count: 0, has_merged_parents: false };
}

impl Merging {
    /// Of a tree of nodes of this order.
    pub(crate) fn of(order: usize) -> Merging {
        Merging {
            expectation: Expectation::default(),
            pass: Mutex::default(),
            due_count: AtomicU64::new(order as u64),
            merged_count: AtomicU64::new(0),
        }
    }

    /// How often two nodes became one, or a root went, since the opening.
    pub(crate) fn merged_count(&self) -> u64 {
        self.merged_count.load(Ordering::Relaxed)
    }

    /// Whether a step is wanted, and how long a sleep may be: as for the reaper.
    pub(crate) fn expectation(&self) -> &Expectation {
        &self.expectation
    }
}

impl<M: Medium, D: Dram> Ink<M, D> {
    /// Keys were deleted: says so once it is worth a pass.
    #[inline]
    pub(crate) fn expect_merges(&self) {
        if self.is_merging_due() {
            self.merging.expectation.expect();
        }
    }

    fn is_merging_due(&self) -> bool {
        self.tree.vacated_count() >= self.merging.due_count.load(Ordering::Relaxed)
    }

    /// Merges what can be merged below one parent.
    pub(crate) fn merge(&self) -> Result<Progress, Error> {
        let Some(mut pass) = self.merging.pass.try_lock() else { return Ok(Progress::Idle) };
        if pass.is_none() {
            if !self.merging.expectation.begin() {
                return Ok(Progress::Idle);
            }
            if !self.is_merging_due() {
                self.merging.expectation.end();
                return Ok(Progress::Idle);
            }
            self.tree.take_vacated();
            *pass = Some(Pass::START);
        }
        let under_way = pass.as_mut().expect("it was just begun");
        let progress = self.merge_part(under_way);
        if !matches!(progress, Ok(Progress::More | Progress::Rest(_))) {
            let due_count = (under_way.pair_count / DELETED_SHARE).max(self.tree.options().order as u64);
            self.merging.due_count.store(due_count, Ordering::Relaxed);
            *pass = None;
            self.merging.expectation.end();
        }
        progress
    }

    /// Idle at the end of the pass.
    fn merge_part(&self, pass: &mut Pass) -> Result<Progress, Error> {
        loop {
            let mut behind = None;
            let ends_at = &mut |key: &[u8]| behind = Some(key.to_vec());
            let merged = self.tree.merge(epoch::thread_index(), pass.level, pass.from.as_deref(), ends_at);
            match merged.map_err(told)? {
                Merged::Fewer => {
                    self.merging.merged_count.fetch_add(1, Ordering::Relaxed);
                    pass.has_merged_parents |= pass.level > 1;
                }
                Merged::Nothing { pair_count, has_more } => {
                    pass.pair_count += if pass.level == 1 { pair_count as u64 } else { 0 };
                    (pass.level, pass.from) = if has_more { (pass.level, behind) } else { (pass.level + 1, None) };
                    return Ok(Progress::More);
                }
                Merged::Beyond if pass.has_merged_parents => {
                    *pass = Pass::START;
                    return Ok(Progress::More);
                }
                Merged::Beyond => return Ok(Progress::Idle),
                Merged::NotNow => return Ok(Progress::Rest(PAUSE)),
            }
        }
    }
}
