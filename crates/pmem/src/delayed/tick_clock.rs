//! The clocks of an emulated device: the processor's, and one that a test drives.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::arch;

/// A clock that counts ticks.
pub trait TickClock: Send + Sync + 'static {
    /// Returns the time.
    fn now(&self) -> u64;

    /// Like [`TickClock::now`], after everything before it is done.
    fn now_in_order(&self) -> u64 {
        self.now()
    }

    /// Waits until the time is `tick` at least.
    fn wait_until(&self, tick: u64);
}

/// The processor's time-stamp counter; a wait spins.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TimeStamps;

impl TickClock for TimeStamps {
    #[inline(always)]
    fn now(&self) -> u64 {
        arch::timestamp()
    }

    #[inline(always)]
    fn now_in_order(&self) -> u64 {
        arch::timestamp_in_order()
    }

    fn wait_until(&self, tick: u64) {
        while (tick.wrapping_sub(arch::timestamp()) as i64) > 0 {
            core::hint::spin_loop();
        }
    }
}

/// A clock that only waits advance, and [`DrivenClock::advance`]. So the time that passes is the exact time that
/// the device made its callers wait.
#[derive(Debug, Default)]
pub struct DrivenClock(AtomicU64);

impl DrivenClock {
    /// Lets time pass, as work between two reads does.
    pub fn advance(&self, ticks: u64) {
        self.0.fetch_add(ticks, Ordering::Relaxed);
    }
}

impl TickClock for DrivenClock {
    fn now(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn wait_until(&self, tick: u64) {
        self.0.fetch_max(tick, Ordering::Relaxed);
    }
}
