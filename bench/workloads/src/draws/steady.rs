//! Operations that use no record up, so that a pass lasts its full time.

use rand::rngs::SmallRng;

use super::{Act, Draw, Draws};
use crate::distribution::uniform;
use crate::records::absent;
use crate::scans::SCAN_ITEMS_MAX;
use crate::worker::Worker;

/// One kind of operation repeatedly, on any loaded record, or on absent records if it is a miss.
pub(super) struct Steady {
    act: Act,
    records: u64,
}

impl Steady {
    pub(super) fn new(act: Act, worker: &Worker) -> Steady {
        Steady { act, records: worker.records.count }
    }
}

impl Draws for Steady {
    fn draw(&mut self, rng: &mut SmallRng) -> Option<Draw> {
        let number = uniform(rng, self.records);
        let record = if self.act == Act::Miss { absent(number) } else { number };
        Some(Draw { act: self.act, record })
    }
}

/// Scans of 1 to 100 items beginning at any loaded record, each length equally likely.
pub(super) struct Scan {
    records: u64,
}

impl Scan {
    pub(super) fn new(worker: &Worker) -> Scan {
        Scan { records: worker.records.count }
    }
}

impl Draws for Scan {
    fn draw(&mut self, rng: &mut SmallRng) -> Option<Draw> {
        let record = uniform(rng, self.records);
        Some(Draw { act: scan(rng), record })
    }
}

/// Draws a scan's length.
pub(super) fn scan(rng: &mut SmallRng) -> Act {
    Act::Scan(1 + uniform(rng, SCAN_ITEMS_MAX))
}
