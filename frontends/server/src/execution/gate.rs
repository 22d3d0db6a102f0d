//! Mutual exclusion of commands.
//!
//! An event loop holds its own lane's lock while executing the requests of one turn, and releases the lock before
//! reading or sending. Only a command that needs exclusive access locks the lanes of all loops, in order. So a typical
//! command costs its loop one uncontended lock per turn, on the loop's own cache line.
//!
//! Background jobs (`background`) take no loop's lane. Each job claims the keys that it uses, one job at a time; before
//! each request a loop checks whether the claim blocks it. A claim is made in two steps:
//! 1. The claim is published.
//! 2. Each lane is locked and released.
//!
//! So every request that did not see the claim has finished before the job begins. A command with exclusive access
//! checks again once it has all lanes: either the command sees the claim, or the job waits for the command in step 2.
//!
//! # Lock order
//! The lane of the background jobs, then the claim, then the loops' lanes, in order or one at a time. The holder of a
//! loop's lane locks the claim last; no job holds the claim's lock while it waits.

use std::iter;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Mutex, MutexGuard};
use resp::Request;

use crate::clients::session::Session;
use crate::execution::claims::Claim;
use command_table::Entry;

pub(crate) struct Gate {
    lanes: Box<[Lane]>,
    background: Lane,
    /// Keys used by the running background job.
    claim: Mutex<Option<Claim>>,
    has_claim: AtomicBool,
}

/// Two cache lines, because the processor prefetches neighbouring lines in pairs.
#[derive(Default)]
#[repr(align(128))]
struct Lane(Mutex<()>);

/// Permission to execute concurrently with other loops.
pub(crate) struct Pass<'a>(#[allow(dead_code, reason = "it is held")] MutexGuard<'a, ()>);

/// Permission to run a background job concurrently with the loops.
pub(crate) struct Claimed<'a> {
    gate: &'a Gate,
    /// Dropped after the claim.
    _pass: Pass<'a>,
}

impl Drop for Claimed<'_> {
    fn drop(&mut self) {
        self.gate.has_claim.store(false, Ordering::SeqCst);
        *self.gate.claim.lock() = None;
    }
}

/// Permission to execute exclusively.
pub(crate) struct Alone<'a>(#[allow(dead_code, reason = "they are held")] Vec<MutexGuard<'a, ()>>);

impl Gate {
    pub(crate) fn new(lane_count: usize) -> Gate {
        Gate {
            lanes: (0..lane_count).map(|_| Lane::default()).collect(),
            background: Lane::default(),
            claim: Mutex::default(),
            has_claim: AtomicBool::new(false),
        }
    }

    /// Waits for a command with exclusive access. The caller must not hold a pass.
    pub(crate) fn pass(&self, lane: usize) -> Pass<'_> {
        Pass(self.lanes[lane].0.lock())
    }

    /// Waits for the previous background job, then until no loop executes a request that the claim blocks. The caller
    /// must not hold a pass. The claim is made once no other thread can begin the tree of collections.
    pub(crate) fn claim(&self, claim: impl FnOnce() -> Claim) -> Claimed<'_> {
        let pass = Pass(self.background.0.lock());
        *self.claim.lock() = Some(claim());
        self.has_claim.store(true, Ordering::SeqCst);
        self.await_turns();
        Claimed { gate: self, _pass: pass }
    }

    /// Waits for the running background job; the next one begins once this is dropped. The caller must not hold a pass.
    pub(crate) fn between_jobs(&self) -> Pass<'_> {
        Pass(self.background.0.lock())
    }

    /// Waits until each loop has finished its current turn. The caller must not hold a pass.
    pub(crate) fn await_turns(&self) {
        self.lanes.iter().for_each(|lane| drop(lane.0.lock()));
    }

    /// Returns whether a background job is running.
    #[inline]
    pub(crate) fn has_claim(&self) -> bool {
        self.has_claim.load(Ordering::SeqCst)
    }

    /// Returns whether the request has to wait for the running background job.
    #[inline]
    pub(crate) fn blocks(&self, entry: Entry, request: &Request<'_>, session: &Session) -> bool {
        self.has_claim() && self.conflicts(&Claim::of(entry, request, session))
    }

    #[cold]
    fn conflicts(&self, claim: &Claim) -> bool {
        self.claim.lock().as_ref().is_some_and(|other| other.conflicts(claim))
    }

    /// Waits until no loop executes. The caller must not hold a pass.
    pub(crate) fn close(&self) -> Alone<'_> {
        Alone(self.lanes.iter().map(|lane| lane.0.lock()).collect())
    }

    /// Waits until neither a loop nor the background job executes. The caller must not hold a pass.
    pub(crate) fn close_to_all(&self) -> Alone<'_> {
        Alone(iter::once(&self.background).chain(&self.lanes).map(|lane| lane.0.lock()).collect())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;
    use std::thread;

    use super::*;

    #[test]
    fn exclusive_command_sees_no_partial_state() {
        let (gate, halves) = (Gate::new(2), [AtomicU32::new(0), AtomicU32::new(0)]);
        thread::scope(|scope| {
            for (lane, half) in halves.iter().enumerate() {
                let gate = &gate;
                scope.spawn(move || {
                    for _ in 0..1000 {
                        let _pass = gate.pass(lane);
                        half.fetch_add(1, Ordering::Relaxed);
                        half.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
            for _ in 0..100 {
                let _alone = gate.close();
                assert!(halves.iter().all(|half| half.load(Ordering::Relaxed).is_multiple_of(2)));
            }
        });
        assert!(halves.iter().all(|half| half.load(Ordering::Relaxed) == 2000));
    }

    #[test]
    fn disjoint_background_job_is_not_waited_for() {
        let gate = Gate::new(1);
        let claimed = gate.claim(Claim::default);
        assert!(gate.has_claim());
        drop(gate.pass(0));
        drop(gate.close());
        drop(claimed);
        assert!(!gate.has_claim());
    }
}
