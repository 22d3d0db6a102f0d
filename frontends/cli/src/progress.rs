//! Progress of a long command on stderr: a bar on a terminal, otherwise a line every few seconds.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use indicatif::{HumanCount, HumanDuration, ProgressBar, ProgressStyle};

use crate::plural::s;

/// Time between two updates of the bar: looks steady, and its cost is negligible.
const BAR_EVERY: Duration = Duration::from_millis(100);

/// Counts items, and shows the share of a total, in any unit, that is done.
pub(crate) struct Progress {
    /// The verb of the message, for example 'loaded'.
    verb: &'static str,
    items: u64,
    total: Option<u64>,
    start: Instant,
    bar: Option<ProgressBar>,
    every: Duration,
    /// The next time to show progress; `None` means never.
    next: Option<Instant>,
}

impl Progress {
    /// Starts now. `every` is the time between two lines if stderr is not a terminal.
    pub(crate) fn new(verb: &'static str, total: Option<u64>, every: Duration) -> Progress {
        match io::stderr().is_terminal() {
            true => Progress::begin(verb, total, BAR_EVERY, Some(bar(total))),
            false => Progress::begin(verb, total, every, None),
        }
    }

    /// Like [`Progress::new`], but shows only the last line.
    pub(crate) fn silent(verb: &'static str) -> Progress {
        Progress::begin(verb, None, Duration::MAX, None)
    }

    fn begin(verb: &'static str, total: Option<u64>, every: Duration, bar: Option<ProgressBar>) -> Progress {
        let start = Instant::now();
        Progress { verb, items: 0, total, start, bar, every, next: start.checked_add(every) }
    }

    /// Returns the number of items so far.
    pub(crate) fn items(&self) -> u64 {
        self.items
    }

    /// Returns true if the next [`Progress::set`] shows progress.
    pub(crate) fn is_due(&self) -> bool {
        self.next.is_some_and(|next| Instant::now() >= next)
    }

    /// Sets the number of items so far, and the part of the total that is done.
    pub(crate) fn set(&mut self, items: u64, done: u64) {
        self.items = items;
        let now = Instant::now();
        if self.next.is_some_and(|next| now >= next) {
            self.next = now.checked_add(self.every);
            self.show(done);
        }
    }

    fn show(&self, done: u64) {
        let items = format!("{} {} item{}, {}", self.verb, HumanCount(self.items), s(self.items), self.rate());
        match &self.bar {
            Some(bar) => {
                bar.set_position(done);
                bar.set_message(items);
            }
            None => say(&format!("{items}{}", self.left(done))),
        }
    }

    fn left(&self, done: u64) -> String {
        let Some(total) = self.total.filter(|_| done > 0) else { return String::new() };
        let left = self.start.elapsed().mul_f64(total.saturating_sub(done) as f64 / done as f64);
        format!(", {} %, {} left", done.saturating_mul(100) / total.max(1), HumanDuration(left))
    }

    fn rate(&self) -> String {
        let per_second = self.items as f64 / self.start.elapsed().as_secs_f64().max(1e-9);
        format!("{}/s", HumanCount(per_second as u64))
    }

    /// Prints the last line: all items, the time and the rate.
    pub(crate) fn finish(self) {
        say(&self.end());
    }

    /// Removes the bar and returns the last line.
    pub(crate) fn end(self) -> String {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        let seconds = self.start.elapsed().as_secs_f64();
        format!("{} {} item{} in {seconds:.2} s, {}", self.verb, HumanCount(self.items), s(self.items), self.rate())
    }
}

/// Prints a line. Ignores errors: if stderr is closed, nothing reads the progress.
fn say(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

fn bar(total: Option<u64>) -> ProgressBar {
    let (bar, template) = match total {
        Some(total) => (ProgressBar::new(total), "{bar:30} {percent:>3} %  {msg}  {eta} left"),
        None => (ProgressBar::no_length(), "{spinner} {msg}  {elapsed}"),
    };
    bar.with_style(ProgressStyle::with_template(template).expect("the template is well-formed"))
}
