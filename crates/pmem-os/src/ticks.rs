//! Durations in ticks of the processor's time-stamp counter.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use pmem::arch;

/// Returns the duration in ticks. The counter's rate is measured on the first call.
#[must_use]
pub fn ticks(duration: Duration) -> u64 {
    static PER_SECOND: OnceLock<f64> = OnceLock::new();
    if duration.is_zero() { 0 } else { (duration.as_secs_f64() * PER_SECOND.get_or_init(per_second)) as u64 }
}

fn per_second() -> f64 {
    const MEASURED: Duration = Duration::from_millis(5);
    let (start, first) = (Instant::now(), arch::timestamp());
    while start.elapsed() < MEASURED {
        std::hint::spin_loop();
    }
    (arch::timestamp() - first) as f64 / start.elapsed().as_secs_f64()
}
