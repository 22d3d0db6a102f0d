//! Who executes beside whom.
//!
//! An event loop has its lane's lock while it executes the requests of one turn, and gives it up before it reads or sends.
//! Nobody else takes that lock but a command that must be alone, which takes all of them, in order. So the usual command
//! pays for one lock that is on its own cache line and that nobody wants, once a turn.
//!
//! Errands (`errands`) have a lane of their own, which they hold for as long as they take. Who must be alone does not wait for
//! that one: the client is postponed, and every loop is woken when an errand has let go of the lane.
//!
//! # Lock order
//! The loops' lanes, in order; then the errands'. So whoever has all of the first finds the last one taken by an errand alone.

use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Mutex, MutexGuard};

pub(crate) struct Gate {
    lanes: Box<[Lane]>,
    errands: Lane,
    /// An errand has its lane, or has just had it.
    has_errand: AtomicBool,
}

/// Two lines wide, since neighbouring lines are fetched in pairs.
#[derive(Default)]
#[repr(align(128))]
struct Lane(Mutex<()>);

/// The right to execute beside others.
pub(crate) struct Pass<'a>(#[allow(dead_code, reason = "it is held")] MutexGuard<'a, ()>);

/// The right to do an errand beside the loops.
pub(crate) struct ErrandPass<'a> {
    has_errand: &'a AtomicBool,
    /// Let go of after the flag: who finds the flag set will be woken.
    _pass: Pass<'a>,
}

impl Drop for ErrandPass<'_> {
    fn drop(&mut self) {
        self.has_errand.store(false, Ordering::SeqCst);
    }
}

/// The right to execute alone.
pub(crate) struct Alone<'a>(#[allow(dead_code, reason = "they are held")] Vec<MutexGuard<'a, ()>>);

impl Gate {
    pub(crate) fn new(lane_count: usize) -> Gate {
        let lanes = (0..lane_count).map(|_| Lane::default()).collect();
        Gate { lanes, errands: Lane::default(), has_errand: AtomicBool::new(false) }
    }

    /// Waits while somebody is alone. Nobody may ask for it who has a pass.
    pub(crate) fn pass(&self, lane: usize) -> Pass<'_> {
        Pass(self.lanes[lane].0.lock())
    }

    /// Waits for the errand before, and while somebody is alone.
    pub(crate) fn errand(&self) -> ErrandPass<'_> {
        let pass = Pass(self.errands.0.lock());
        self.has_errand.store(true, Ordering::SeqCst);
        ErrandPass { has_errand: &self.has_errand, _pass: pass }
    }

    /// Whether an errand is under way.
    pub(crate) fn has_errand(&self) -> bool {
        self.has_errand.load(Ordering::SeqCst)
    }

    /// Waits until no loop executes; none while an errand is under way. Nobody may ask for it who has a pass.
    pub(crate) fn try_close(&self) -> Option<Alone<'_>> {
        let mut lanes: Vec<_> = self.lanes.iter().map(|lane| lane.0.lock()).collect();
        lanes.push(self.errands.0.try_lock()?);
        Some(Alone(lanes))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;
    use std::thread;

    use super::*;

    #[test]
    fn who_is_alone_sees_nobody_half_way() {
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
                let _alone = gate.try_close().expect("there is no errand");
                assert!(halves.iter().all(|half| half.load(Ordering::Relaxed).is_multiple_of(2)));
            }
        });
        assert!(halves.iter().all(|half| half.load(Ordering::Relaxed) == 2000));
    }

    #[test]
    fn nobody_is_alone_beside_an_errand_and_nobody_waits_for_it() {
        let gate = Gate::new(1);
        let errand = gate.errand();
        assert!(gate.has_errand() && gate.try_close().is_none());
        drop(gate.pass(0));
        drop(errand);
        let alone = gate.try_close();
        assert!(alone.is_some() && !gate.has_errand());
    }
}
