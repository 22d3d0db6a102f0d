//! The latency model of the HiKV paper (section 4.1): slow memory, emulated on fast memory.

use crate::{Medium, Probe, Probed, arch};

/// A medium slowed down to the latencies of another.
pub type Delayed<M> = Probed<M, Latency>;

/// Extra time, in ticks of the processor's time-stamp counter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Latency {
    /// Added once per persist, that is at each fence (the paper: 600 ns).
    pub persist_ticks: u64,
    /// Added once per access to an item (the paper: none, and a study of 50 to 1,400 ns in section 4.6).
    pub read_ticks: u64,
}

impl<M: Medium> Delayed<M> {
    /// `inner`, slowed down by `latency`.
    pub fn new(inner: M, latency: Latency) -> Delayed<M> {
        Probed::with_probe(inner, latency)
    }
}

impl Probe for Latency {
    fn fenced(&self) {
        spin(self.persist_ticks);
    }

    fn read(&self) {
        spin(self.read_ticks);
    }
}

fn spin(ticks: u64) {
    let start = arch::timestamp();
    while arch::timestamp().wrapping_sub(start) < ticks {
        core::hint::spin_loop();
    }
}
