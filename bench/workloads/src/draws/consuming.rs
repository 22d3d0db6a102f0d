//! Operations that use records up. A pass ends when none is left.

use rand::rngs::SmallRng;

use super::{Act, Draw, Draws};
use crate::worker::Worker;

/// Inserts of new records. Each pass may add as many as were loaded, so that memory stays bounded.
pub(super) struct Insert {
    worker: Worker,
    limit: u64,
    drawn: u64,
}

impl Insert {
    pub(super) fn new(worker: &Worker) -> Insert {
        Insert { worker: *worker, limit: worker.share(worker.records.count), drawn: 0 }
    }
}

impl Draws for Insert {
    fn draw(&mut self, _rng: &mut SmallRng) -> Option<Draw> {
        let record = (self.drawn < self.limit).then(|| self.worker.fresh(self.drawn))?;
        self.drawn += 1;
        Some(Draw { act: Act::Insert, record })
    }

    /// Continues where the last pass ended: the store grows further and does not just fill freed space.
    fn rewind(&mut self) -> bool {
        self.limit += self.worker.share(self.worker.records.count);
        false
    }
}

/// Deletes of loaded records in random order, each once.
pub(super) struct Delete {
    worker: Worker,
    drawn: u64,
}

impl Delete {
    pub(super) fn new(worker: &Worker) -> Delete {
        Delete { worker: *worker, drawn: 0 }
    }
}

impl Draws for Delete {
    fn draw(&mut self, _rng: &mut SmallRng) -> Option<Draw> {
        let record =
            (self.drawn < self.worker.share(self.worker.records.count)).then(|| self.worker.victim(self.drawn))?;
        self.drawn += 1;
        Some(Draw { act: Act::Delete, record })
    }

    fn rewind(&mut self) -> bool {
        self.drawn = 0;
        true
    }
}

/// Removals of the first record in order, as many as were loaded. All threads together leave none.
pub(super) struct TakeFirst {
    count: u64,
    drawn: u64,
}

impl TakeFirst {
    pub(super) fn new(worker: &Worker) -> TakeFirst {
        TakeFirst { count: worker.share(worker.records.count), drawn: 0 }
    }
}

impl Draws for TakeFirst {
    fn draw(&mut self, _rng: &mut SmallRng) -> Option<Draw> {
        (self.drawn < self.count).then_some(())?;
        self.drawn += 1;
        Some(Draw { act: Act::TakeFirst, record: 0 })
    }

    fn rewind(&mut self) -> bool {
        self.drawn = 0;
        true
    }
}
