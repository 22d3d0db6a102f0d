//! Opening a store, and how far that is: a journal's log is read first, and keys are put in order where an engine serves none before that.
//!
//! Of a small one nothing is seen. Of a large one a terminal shows a bar, and stderr a line every few seconds elsewhere.

use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use hikv::{OpenError, OpenProgress, Options, Store, Verify};
use indicatif::{ProgressBar, ProgressStyle};

/// A user who waits less wants to see nothing.
const SHOWN_AFTER_MS: u64 = 500;

/// As often as a log of somebody's should say the same again.
const SAID_EVERY_MS: u64 = 5000;

/// Opens the store at `dir`.
pub(crate) fn open(options: &Options, dir: &Path) -> Result<Store, OpenError> {
    let watched = Watched { start: Instant::now(), next_ms: AtomicU64::new(SHOWN_AFTER_MS), bar: bar() };
    let opened = options.open_with_progress(dir, &|progress| watched.show(progress));
    watched.bar.finish_and_clear();
    opened
}

/// Opens the store at `dir` for reading.
pub(crate) fn read_only(dir: &Path) -> Result<Store, OpenError> {
    verified(dir, Verify::default())
}

/// As [`read_only`], with reads that compare so much.
pub(crate) fn verified(dir: &Path, verify: Verify) -> Result<Store, OpenError> {
    open(&Options::new().read_only(true).verify_reads(verify), dir)
}

struct Watched {
    start: Instant,
    /// When to show something, after the start.
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
            // If stderr is gone, progress has no reader.
            let _ = writeln!(io::stderr(), "{}", shown.text);
            self.next_ms.store(elapsed_ms + SAID_EVERY_MS, Ordering::Relaxed);
        }
    }
}

/// What is shown of how far it is.
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
            OpenProgress::Indexing { done, total } => (done, total, format!("put {done} of {total} keys in order")),
            _ => return None,
        };
        Some(Shown { done, total, text })
    }
}

/// Draws nothing off a terminal.
fn bar() -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:30} {percent:>3} %  {msg}  {eta} left");
    ProgressBar::new(0).with_style(style.expect("the template is well-formed"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_said_what_is_done_of_how_much() {
        let text = |progress| Shown::of(progress).map(|shown| shown.text);
        let replaying = OpenProgress::Replaying { done: 7, total: 64 };
        assert_eq!(text(replaying).as_deref(), Some("replayed 7 of 64 segments of the log"));
        let indexing = OpenProgress::Indexing { done: 65_536, total: 10_000_000 };
        assert_eq!(text(indexing).as_deref(), Some("put 65536 of 10000000 keys in order"));
    }
}
