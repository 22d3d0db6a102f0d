//! Which commands execute beside which.
//!
//! An event loop has its lane's lock while executing the requests of one turn, and gives the lock up before reading or
//! sending. Only a command that must be alone takes other loops' locks: all of them, in order. So a usual command costs the
//! loop one uncontended lock, on a cache line of its own, once a turn.
//!
//! Errands (`errands`) take no loop's lane. Each claims the keys that it touches, one errand at a time; loops look before each
//! request whether a claim keeps it out. A claim is made in two steps: 1. it is set, 2. each lane is taken and given back. So
//! whatever a loop does that did not see the claim has ended before the errand begins. A command that must be alone looks once more
//! when it has all lanes: either that command sees the claim, or the errand waits for it at 2.
//!
//! # Lock order
//! The errands' lane, then the claim, then the loops' lanes, in order, or one at a time. The holder of a loop's lane takes the
//! claim as a leaf, which no errand holds while it waits.

use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Mutex, MutexGuard};
use resp::Request;

use crate::clients::session::Session;
use crate::execution::claims::Claim;
use crate::table::Entry;

pub(crate) struct Gate {
    lanes: Box<[Lane]>,
    errands: Lane,
    /// What the errand touches that is under way.
    claim: Mutex<Option<Claim>>,
    has_claim: AtomicBool,
}

/// Two lines wide, since neighbouring lines are fetched in pairs.
#[derive(Default)]
#[repr(align(128))]
struct Lane(Mutex<()>);

/// The right to execute beside others.
pub(crate) struct Pass<'a>(#[allow(dead_code, reason = "it is held")] MutexGuard<'a, ()>);

/// The right to do an errand beside the loops.
pub(crate) struct Claimed<'a> {
    gate: &'a Gate,
    /// Let go of after the claim.
    _pass: Pass<'a>,
}

impl Drop for Claimed<'_> {
    fn drop(&mut self) {
        self.gate.has_claim.store(false, Ordering::SeqCst);
        *self.gate.claim.lock() = None;
    }
}

/// The right to execute alone.
pub(crate) struct Alone<'a>(#[allow(dead_code, reason = "they are held")] Vec<MutexGuard<'a, ()>>);

impl Gate {
    pub(crate) fn new(lane_count: usize) -> Gate {
        Gate {
            lanes: (0..lane_count).map(|_| Lane::default()).collect(),
            errands: Lane::default(),
            claim: Mutex::default(),
            has_claim: AtomicBool::new(false),
        }
    }

    /// Waits while a command is alone. The caller has no pass yet.
    pub(crate) fn pass(&self, lane: usize) -> Pass<'_> {
        Pass(self.lanes[lane].0.lock())
    }

    /// Waits for the errand before, and until no loop does what the claim keeps out. The caller has no pass.
    pub(crate) fn claim(&self, claim: Claim) -> Claimed<'_> {
        let pass = Pass(self.errands.0.lock());
        *self.claim.lock() = Some(claim);
        self.has_claim.store(true, Ordering::SeqCst);
        self.await_turns();
        Claimed { gate: self, _pass: pass }
    }

    /// Waits until each loop has ended the turn that it is at now. The caller has no pass.
    pub(crate) fn await_turns(&self) {
        self.lanes.iter().for_each(|lane| drop(lane.0.lock()));
    }

    /// Whether an errand is under way.
    #[inline]
    pub(crate) fn has_claim(&self) -> bool {
        self.has_claim.load(Ordering::SeqCst)
    }

    /// Whether the request must wait for the errand that is under way.
    #[inline]
    pub(crate) fn keeps_out(&self, entry: Entry, request: &Request<'_>, session: &Session) -> bool {
        self.has_claim() && self.conflicts(&Claim::of(entry, request, session))
    }

    #[cold]
    fn conflicts(&self, claim: &Claim) -> bool {
        self.claim.lock().as_ref().is_some_and(|other| other.conflicts(claim))
    }

    /// Waits until no loop executes. The caller has no pass.
    pub(crate) fn close(&self) -> Alone<'_> {
        Alone(self.lanes.iter().map(|lane| lane.0.lock()).collect())
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
        let claimed = gate.claim(Claim::default());
        assert!(gate.has_claim());
        drop(gate.pass(0));
        drop(gate.close());
        drop(claimed);
        assert!(!gate.has_claim());
    }
}
