//! Opens a store and shows progress: reading a journal's log, and building the key order if the engine needs it first.
//!
//! Shows nothing if opening is quick. Otherwise a terminal shows a bar, and any other stderr gets a line every 5
//! seconds.

use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use hikv::{OpenError, OpenProgress, Options, Store, Verify};
use indicatif::{ProgressBar, ProgressStyle};

use crate::memory::Memory;

/// Time until the first progress is shown.
const SHOWN_AFTER_MS: u64 = 500;

/// Time between two progress lines.
const SAID_EVERY_MS: u64 = 5000;

/// Opens the store at `dir`.
pub(crate) fn open(options: &Options, dir: &Path) -> Result<Store, OpenError> {
    let watched = Watched { start: Instant::now(), next_ms: AtomicU64::new(SHOWN_AFTER_MS), bar: bar() };
    let opened = options.open_with_progress(dir, &|progress| watched.show(progress));
    watched.bar.finish_and_clear();
    opened
}

/// Opens the store at `dir` for reading.
pub(crate) fn read_only(dir: &Path, memory: &Memory) -> Result<Store, OpenError> {
    verified(dir, Verify::default(), memory)
}

/// Like [`read_only`], with the level of verification of reads.
pub(crate) fn verified(dir: &Path, verify: Verify, memory: &Memory) -> Result<Store, OpenError> {
    let options = Options::new().read_only(true).tuning(|tuning| tuning.verify_reads(verify));
    open(&memory.options(options), dir)
}

struct Watched {
    start: Instant,
    /// Time from the start to the next progress line.
    next_ms: AtomicU64,
    bar: ProgressBar,
}

impl Watched {
    fn show(&self, progress: OpenProgress) {
        let elapsed_ms = self.start.elapsed().as_millis() as u64;
        if elapsed_ms < self.next_ms.load(Ordering::Relaxed) {
            return;
        }
        let Some(shown) = Shown::of(progress) else { return };
        if io::stderr().is_terminal() {
            let Shown { done, total, text } = shown;
            self.bar.set_length(total);
            self.bar.set_position(done);
            self.bar.set_message(text);
        } else {
            // Ignores errors: if stderr is closed, nothing reads the progress.
            let _ = writeln!(io::stderr(), "{}", shown.text);
            self.next_ms.store(elapsed_ms + SAID_EVERY_MS, Ordering::Relaxed);
        }
    }
}

/// The progress, as shown.
struct Shown {
    done: u64,
    total: u64,
    text: String,
}

impl Shown {
    fn of(progress: OpenProgress) -> Option<Shown> {
        let (done, total, text) = match progress {
            OpenProgress::Replaying { done, total } => {
                (done, total, format!("replayed {done} of {total} segments of the log"))
            }
            OpenProgress::Indexing { done, total } => (done, total, format!("ordered {done} of {total} keys")),
            _ => return None,
        };
        Some(Shown { done, total, text })
    }
}

/// Returns a progress bar, which draws only on a terminal.
fn bar() -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:30} {percent:>3} %  {msg}  {eta} left");
    ProgressBar::new(0).with_style(style.expect("the template is well-formed"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_shows_done_and_total() {
        let text = |progress| Shown::of(progress).map(|shown| shown.text);
        let replaying = OpenProgress::Replaying { done: 7, total: 64 };
        assert_eq!(text(replaying).as_deref(), Some("replayed 7 of 64 segments of the log"));
        let indexing = OpenProgress::Indexing { done: 65_536, total: 10_000_000 };
        assert_eq!(text(indexing).as_deref(), Some("ordered 65536 of 10000000 keys"));
    }
}
