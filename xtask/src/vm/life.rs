//! Lives of one store: a boot, some acknowledged changes, a power cut. The next boot checks the result.

use std::process::Child;
use std::sync::mpsc::RecvTimeoutError;

use super::acknowledged::{Acknowledged, Report};
use super::time::Time;
use super::{SILENCE_MAX, lines_of};
use crate::failure::Failure;

/// The end of a life.
pub(crate) enum Ended {
    Held,
    /// The program's objection.
    Lost(String),
}

/// Characters that the cache model prints around the number of an image.
const IMAGE: [char; 2] = ['\u{1}', '\u{2}'];

/// The contents that a cut would have left if it had ended the life.
pub(crate) struct Image {
    pub(crate) number: String,
    /// Changes acknowledged before the cut.
    pub(crate) acknowledged: Acknowledged,
    /// True if the store was open at that time.
    pub(crate) is_open: bool,
}

/// State that one life passes to the next.
pub(crate) struct Lives {
    pub(crate) seed: u64,
    pub(crate) acknowledged: Acknowledged,
    /// Unfinished changes that openings undid.
    pub(crate) undone: u64,
    /// Nodes removed by merges, as far as reported: in all lives, and in the current one.
    pub(crate) merged: u64,
    merged_now: u64,
    pub(crate) total: u64,
    /// Of the last life.
    pub(crate) images: Vec<Image>,
}

impl Lives {
    pub(crate) fn new(thread_count: usize, seed: u64) -> Lives {
        Lives {
            seed,
            acknowledged: Acknowledged::new(thread_count),
            undone: 0,
            merged: 0,
            merged_now: 0,
            total: 0,
            images: Vec::new(),
        }
    }

    /// Returns the arguments of the guest's program.
    pub(crate) fn arguments(&self, program: &str) -> Vec<String> {
        let numbers = std::iter::once(&self.seed).chain(self.acknowledged.counts()).map(u64::to_string);
        std::iter::once(program.to_owned()).chain(numbers).collect()
    }

    /// Runs until `wanted` changes are acknowledged, then cuts the power; with `None` the machine cuts itself. Calls
    /// `each` with every other line.
    pub(crate) fn live(
        &mut self,
        mut qemu: Child,
        wanted: Option<u64>,
        each: &mut dyn FnMut(&str),
    ) -> Result<Ended, Failure> {
        let ended = self.watch(&mut qemu, wanted, each);
        _ = qemu.kill();
        _ = qemu.wait();
        ended
    }

    fn watch(&mut self, qemu: &mut Child, wanted: Option<u64>, each: &mut dyn FnMut(&str)) -> Result<Ended, Failure> {
        let (lines, time) = (lines_of(qemu), Time::of(qemu));
        let (mut said, mut is_judged, mut last, mut begun) = (0, false, String::new(), String::new());
        self.images.clear();
        while !is_judged || wanted.is_none_or(|wanted| said < wanted) {
            let line = match time.next_line(&lines, SILENCE_MAX) {
                Ok(line) => line,
                Err(RecvTimeoutError::Disconnected) if wanted.is_none() => break,
                Err(_) => return Err(format!("seed {}: the guest printed nothing more after '{last}'", self.seed)),
            };
            last.clone_from(&line);
            let line = std::mem::take(&mut begun) + &line;
            if let Some((before, number)) = line.strip_suffix(IMAGE[1]).and_then(|line| line.rsplit_once(IMAGE[0])) {
                let (number, acknowledged) = (number.to_owned(), self.acknowledged.clone());
                self.images.push(Image { number, acknowledged, is_open: is_judged });
                before.clone_into(&mut begun);
                continue;
            }
            if line.starts_with("lost") || line.contains("Kernel panic") {
                return Ok(Ended::Lost(line));
            }
            match self.record(&line)? {
                Report::Change => said += 1,
                report => {
                    is_judged |= report == Report::Contents;
                    each(&line);
                }
            }
        }
        _ = qemu.kill();
        // Lines printed before the cut count, whether they were read by then or not.
        for line in lines {
            said += u64::from(self.record(&line)? == Report::Change);
        }
        self.total += said;
        self.merged += std::mem::take(&mut self.merged_now);
        Ok(Ended::Held)
    }

    /// Records a line and returns its meaning.
    fn record<'l>(&mut self, line: &'l str) -> Result<Report<'l>, Failure> {
        let report = self.acknowledged.record(line)?;
        match report {
            Report::Said("merged", count) => self.merged_now = count.parse().unwrap_or(self.merged_now),
            Report::Said("undone", count) => self.undone += count.parse::<u64>().unwrap_or(0),
            _ => {}
        }
        Ok(report)
    }
}
