//! Lives of one store: a boot, some acknowledged changes, a cut; and the next boot judges what is there.

use std::process::Child;
use std::sync::mpsc::RecvTimeoutError;

use super::time::Time;
use super::{SILENCE_MAX, lines_of};
use crate::failure::Failure;

/// How a life ended.
pub(crate) enum Ended {
    Held,
    /// What the program objects to.
    Lost(String),
}

/// What the model of the processor's cache says around the number of an image.
const IMAGE: [char; 2] = ['\u{1}', '\u{2}'];

/// What a cut would have left, had it ended the life.
pub(crate) struct Image {
    pub(crate) number: String,
    /// What was acknowledged before.
    pub(crate) acknowledged: Vec<u64>,
    /// True if the store was open by then.
    pub(crate) is_open: bool,
}

/// What one life leaves to the next.
pub(crate) struct Lives {
    pub(crate) seed: u64,
    /// Of each thread.
    pub(crate) acknowledged: Vec<u64>,
    /// Changes that openings took back.
    pub(crate) undone: u64,
    /// Nodes that merges made fewer, as far as was said; of all lives, and of the present one.
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
            acknowledged: vec![0; thread_count],
            undone: 0,
            merged: 0,
            merged_now: 0,
            total: 0,
            images: Vec::new(),
        }
    }

    /// What the guest's program is told.
    pub(crate) fn arguments(&self, program: &str) -> Vec<String> {
        let numbers = std::iter::once(&self.seed).chain(&self.acknowledged).map(u64::to_string);
        std::iter::once(program.to_owned()).chain(numbers).collect()
    }

    /// Lets `wanted` changes be acknowledged, and cuts; with `None` the machine cuts itself. `each` is told every other line.
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
                Err(_) => return Err(format!("seed {}: the guest says nothing more after '{last}'", self.seed)),
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
            is_judged |= self.take(&line)?;
            said += u64::from(line.starts_with("a "));
            if !line.starts_with("a ") {
                each(&line);
            }
        }
        _ = qemu.kill();
        // What was said before the cut counts, read or not.
        for line in lines {
            said += u64::from(line.starts_with("a "));
            self.take(&line)?;
        }
        self.total += said;
        self.merged += std::mem::take(&mut self.merged_now);
        Ok(Ended::Held)
    }

    /// Enters what a line says; true if it says what was found.
    fn take(&mut self, line: &str) -> Result<bool, Failure> {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["a", thread, count] => {
                // A line that the cut tore says nothing.
                if let (Ok(thread), Ok(count)) = (thread.parse::<usize>(), count.parse()) {
                    self.acknowledged[thread] = count;
                }
            }
            ["judged", ref counts @ ..] => {
                for (known, count) in self.acknowledged.iter_mut().zip(counts) {
                    *known = count.parse().map_err(|_| format!("not a count: {line}"))?;
                }
                return Ok(true);
            }
            ["said", "merged", count] => self.merged_now = count.parse().unwrap_or(self.merged_now),
            ["said", "undone", count] => self.undone += count.parse::<u64>().unwrap_or(0),
            _ => {}
        }
        Ok(false)
    }
}
