//! Merges of sparse nodes: passes through the tree (`pbtree::Pass`) in a kernel work item, once enough keys were
//! deleted since the last pass. The rule is the library's.
//!
//! # Steps from a delete to a pass
//! 1. A delete is counted (`pbtree`), and then requests the work item if the count says that a pass is due.
//!    Requesting a work item that is already pending changes nothing; one that is running runs again.
//! 2. The work item resets the count before the pass begins, so a delete that the pass does not see counts for the
//!    next one.
//! 3. After a pass the work item compares the count again with the new limit that the pass has computed.
//!
//! A delete during step 3 may request nothing: the next delete does. Before the free space is known nothing is
//! requested; the work item that finds the free space makes the request.
//!
//! # Order
//! A merge tries for the walks' latch before it takes a lane, and never waits for the latch: while a CHECK walks, the
//! work item sleeps and tries again, holding nothing. Otherwise the order is that of a writer. The work item ends at
//! the next part of the tree once the module is being unloaded.

use core::ops::ControlFlow;
use core::sync::atomic::{AtomicU64, Ordering};

use pbtree::{Merged, Next, Pass};

use crate::errno;
use crate::fence::Fence;
use crate::host;
use crate::store::Store;

/// The state of merges.
pub(crate) struct Merging {
    /// The number of deleted keys that starts a pass.
    due_count: AtomicU64,
    merged_count: AtomicU64,
}

/// A pass in progress. It resumes at the first fence, or at the level's beginning; the second fence receives the next
/// start.
struct UnderWay {
    pass: Pass,
    from: Fence,
    behind: Fence,
    is_at_first: bool,
    /// The number of consecutive attempts that a walk has prevented.
    attempt: u32,
}

impl Merging {
    /// Creates the state for a tree of nodes of this order.
    pub(crate) fn of(order: usize) -> Merging {
        Merging { due_count: AtomicU64::new(order as u64), merged_count: AtomicU64::new(0) }
    }

    /// Returns the number of merges since the opening, including removed roots.
    pub(crate) fn merged_count(&self) -> u64 {
        self.merged_count.load(Ordering::Relaxed)
    }
}

impl Store {
    /// Requests the work item if a pass is due. Called after deletes, and once the free space is known.
    pub(crate) fn expect_merges(&self) {
        if self.tree.heap().is_swept() && self.is_merging_due() {
            host::merge_soon();
        }
    }

    fn is_merging_due(&self) -> bool {
        self.tree.vacated_count() >= self.merging.due_count.load(Ordering::Relaxed)
    }

    /// Runs the work item: passes, as long as one is due.
    pub(crate) fn merge(&self, agent: usize) -> Result<(), i64> {
        while self.tree.heap().is_swept() && self.is_merging_due() && !host::is_ending() {
            let (from, behind) = (Fence::new(), Fence::new());
            let mut under_way = UnderWay { pass: Pass::default(), from, behind, is_at_first: true, attempt: 0 };
            self.tree.take_vacated();
            let done = self.merge_parts(agent, &mut under_way);
            self.merging.due_count.store(under_way.pass.due_count(self.tree.options().order), Ordering::Relaxed);
            done?;
        }
        Ok(())
    }

    fn merge_parts(&self, agent: usize, under_way: &mut UnderWay) -> Result<(), i64> {
        while !host::is_ending() {
            let merged = self.merge_part(agent, under_way)?;
            if under_way.goes_on(merged).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn merge_part(
        &self,
        agent: usize,
        UnderWay { pass, from, behind, is_at_first, .. }: &mut UnderWay,
    ) -> Result<Merged, i64> {
        let from = (!*is_at_first).then(|| from.get());
        let mut fenced = Ok(());
        let merged = self.tree.merge(agent, pass.level(), from, &mut |key| fenced = behind.set(key));
        let merged = merged.map_err(errno::of)?;
        if merged == Merged::Fewer {
            self.merging.merged_count.fetch_add(1, Ordering::Relaxed);
        }
        fenced.map(|()| merged)
    }
}

impl UnderWay {
    /// Moves to the next part.
    fn goes_on(&mut self, merged: Merged) -> ControlFlow<()> {
        let next = self.pass.after(merged);
        if next == Next::Later {
            host::relax(self.attempt);
            self.attempt = self.attempt.saturating_add(1);
            return ControlFlow::Continue(());
        }
        self.attempt = 0;
        match next {
            Next::Behind => core::mem::swap(&mut self.from, &mut self.behind),
            Next::Over => return ControlFlow::Break(()),
            Next::Here | Next::First | Next::Later => {}
        }
        self.is_at_first = next == Next::First || next == Next::Here && self.is_at_first;
        ControlFlow::Continue(())
    }
}
