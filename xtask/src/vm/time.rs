//! What time an emulator has had. On a machine that is busy it waits for a processor, and a guest that says nothing meanwhile is not at fault: such
//! waits are no silence.

use std::fs;
use std::process::Child;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// Between two looks at what the emulator waited.
const LOOK: Duration = Duration::from_secs(20);

/// An emulator's time.
pub(crate) struct Time {
    pid: u32,
    start: Instant,
}

/// What its threads had together, since it was begun.
#[derive(Clone, Copy, Default)]
struct Had {
    ran: Duration,
    /// While others had the processors.
    waited: Duration,
}

impl Time {
    pub(crate) fn of(qemu: &Child) -> Time {
        Time { pid: qemu.id(), start: Instant::now() }
    }

    /// What the guest says next, unless it is silent for so long, not counting waits for a processor.
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

    /// For a person.
    pub(crate) fn describe(&self) -> String {
        let Had { ran, waited } = self.had();
        format!(
            "the emulator had {} s of a processor's time in {} s, and waited {} s for it",
            ran.as_secs(),
            self.start.elapsed().as_secs(),
            waited.as_secs()
        )
    }

    /// Of threads that are there. A machine that does not count this has none.
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
