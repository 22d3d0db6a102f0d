//! Counting the keys of trees ([`catalog::Counts`]): making writes wait.
//!
//! While keys are counted, no other thread writes to a marked key: the gate lock is held, the gates of all trees are
//! closed, and the reaper and the deletion of dropped trees pause. Locks, in their order: the gate lock, `open`,
//! windows of writers, the reclaimer's pass, removals of the reaper. A thread that holds one of the last two waits for
//! no gate.

use std::sync::Arc;

use catalog::Space;
use engine::{Engine, Error};
use transact::{Gate, GateLock};

use super::{Trees, WAIT_MAX};

impl Trees {
    /// Returns the number of keys of a tree in a store with a catalog. The first call counts the keys of all trees,
    /// a part at a time. `None` if the calling thread cannot make writes wait.
    pub(crate) fn len(
        &self,
        engine: &dyn Engine,
        gate_lock: &GateLock,
        nameless: &Arc<Gate>,
        space: Space,
    ) -> Result<Option<u64>, Error> {
        while !self.counts.are_known() {
            if !self.count_part(engine, gate_lock, nameless)? {
                return Ok(None);
            }
        }
        self.counted(engine, space)
    }

    /// Returns the number of keys of a tree, without visiting any. `None` if keys must be counted first.
    pub(crate) fn counted(&self, engine: &dyn Engine, space: Space) -> Result<Option<u64>, Error> {
        Ok(match space {
            Space::Whole => Some(engine.len()?),
            _ if !self.counts.are_known() => None,
            Space::Nameless => {
                // Keys that look marked are stored as marked ones.
                let (all, marked) = (engine.len()?, self.counts.marked());
                Some(all.saturating_sub(marked) + self.counts.of(catalog::TreeId::NAMELESS))
            }
            Space::Prefixed(_) => space.tree().map(|id| self.counts.of(id)),
        })
    }

    /// Counts some keys while no thread writes. Returns false if the calling thread cannot make writes wait.
    fn count_part(&self, engine: &dyn Engine, gate_lock: &GateLock, nameless: &Arc<Gate>) -> Result<bool, Error> {
        let Ok(holder) = gate_lock.lock() else { return Ok(false) };
        let open = self.open.lock();
        let closed = holder.close(open.values().map(|named| named.gate()).chain([nameless]), WAIT_MAX);
        if closed.is_err() {
            return Ok(false);
        }
        let _reclaims_nothing = self.reclaimer.pause();
        let Some(key_changes) = engine.key_changes() else { return Ok(false) };
        let _reaps_nothing = key_changes.pause();
        self.counts.count_part(|cursor, each| engine.walk_stored(cursor, each))?;
        Ok(true)
    }
}
