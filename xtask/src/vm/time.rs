//! The processor time of an emulator. On a busy machine the emulator waits for a processor; such waits do not count
//! as silence of the guest.

use std::fs;
use std::process::Child;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// Interval between two readings of the emulator's waiting time.
const LOOK: Duration = Duration::from_secs(20);

/// Measures an emulator's time.
pub(crate) struct Time {
    pid: u32,
    start: Instant,
}

/// Sum over the emulator's threads since its start.
#[derive(Clone, Copy, Default)]
struct Had {
    ran: Duration,
    /// Time while other processes had the processors.
    waited: Duration,
}

impl Time {
    pub(crate) fn of(qemu: &Child) -> Time {
        Time { pid: qemu.id(), start: Instant::now() }
    }

    /// Returns the guest's next line, or an error after `silence_max` of silence, without waits for a processor.
    pub(crate) fn next_line(
        &self,
        lines: &Receiver<String>,
        silence_max: Duration,
    ) -> Result<String, RecvTimeoutError> {
        let (mut silence, mut before) = (Duration::ZERO, self.had());
        loop {
            match lines.recv_timeout(LOOK) {
                Err(RecvTimeoutError::Timeout) if silence < silence_max => {
                    let now = self.had();
                    silence += LOOK.saturating_sub(now.waited.saturating_sub(before.waited));
                    before = now;
                }
                heard => return heard,
            }
        }
    }

    /// Formats the times for a reader.
    pub(crate) fn describe(&self) -> String {
        let Had { ran, waited } = self.had();
        format!(
            "processor time of the emulator: {} s in {} s; waited {} s for a processor",
            ran.as_secs(),
            self.start.elapsed().as_secs(),
            waited.as_secs()
        )
    }

    /// Sums over the existing threads; zero on a machine that does not count this.
    fn had(&self) -> Had {
        let mut had = Had::default();
        for thread in fs::read_dir(format!("/proc/{}/task", self.pid)).into_iter().flatten().flatten() {
            let counted = fs::read_to_string(thread.path().join("schedstat")).unwrap_or_default();
            let mut ns = counted.split_whitespace().map_while(|word| word.parse().ok()).map(Duration::from_nanos);
            had.ran += ns.next().unwrap_or_default();
            had.waited += ns.next().unwrap_or_default();
        }
        had
    }
}
