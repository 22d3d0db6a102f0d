//! Who executes beside whom.
//!
//! An event loop has its lane's lock while it executes the requests of one turn, and gives it up before it reads or sends.
//! Nobody else takes that lock but a command that must be alone, which takes all of them, in order. So the usual command
//! pays for one lock that is on its own cache line and that nobody wants, once a turn.

use parking_lot::{Mutex, MutexGuard};

pub(crate) struct Gate {
    lanes: Box<[Lane]>,
}

/// Two lines wide, since neighbouring lines are fetched in pairs.
#[derive(Default)]
#[repr(align(128))]
struct Lane(Mutex<()>);

/// The right to execute beside others.
pub(crate) struct Pass<'a>(#[allow(dead_code, reason = "it is held")] MutexGuard<'a, ()>);

/// The right to execute alone.
pub(crate) struct Alone<'a>(#[allow(dead_code, reason = "they are held")] Vec<MutexGuard<'a, ()>>);

impl Gate {
    pub(crate) fn new(lane_count: usize) -> Gate {
        Gate { lanes: (0..lane_count).map(|_| Lane::default()).collect() }
    }

    /// Waits while somebody is alone. Nobody may ask for it who has a pass.
    pub(crate) fn pass(&self, lane: usize) -> Pass<'_> {
        Pass(self.lanes[lane].0.lock())
    }

    /// Waits until nobody executes. Nobody may ask for it who has a pass.
    pub(crate) fn close(&self) -> Alone<'_> {
        Alone(self.lanes.iter().map(|lane| lane.0.lock()).collect())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};
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
                let _alone = gate.close();
                assert!(halves.iter().all(|half| half.load(Ordering::Relaxed).is_multiple_of(2)));
            }
        });
        assert!(halves.iter().all(|half| half.load(Ordering::Relaxed) == 2000));
    }
}
