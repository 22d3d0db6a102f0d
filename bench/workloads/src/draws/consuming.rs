//! Operations that use records up. A pass ends when none is left.

use rand::rngs::SmallRng;

use super::{Act, Draw, Draws};
use crate::seat::Seat;

/// Inserts of new records. Each pass may add as many as were loaded, so that memory stays bounded.
pub(super) struct Insert {
    seat: Seat,
    limit: u64,
    drawn: u64,
}

impl Insert {
    pub(super) fn new(seat: &Seat) -> Insert {
        Insert { seat: *seat, limit: seat.share(seat.records.count), drawn: 0 }
    }
}

impl Draws for Insert {
    fn draw(&mut self, _rng: &mut SmallRng) -> Option<Draw> {
        let record = (self.drawn < self.limit).then(|| self.seat.fresh(self.drawn))?;
        self.drawn += 1;
        Some(Draw { act: Act::Insert, record })
    }

    /// Continues where the last pass ended: the store grows further and does not just fill freed space.
    fn rewind(&mut self) -> bool {
        self.limit += self.seat.share(self.seat.records.count);
        false
    }
}

/// Deletes of loaded records in random order, each once.
pub(super) struct Delete {
    seat: Seat,
    drawn: u64,
}

impl Delete {
    pub(super) fn new(seat: &Seat) -> Delete {
        Delete { seat: *seat, drawn: 0 }
    }
}

impl Draws for Delete {
    fn draw(&mut self, _rng: &mut SmallRng) -> Option<Draw> {
        let record = (self.drawn < self.seat.share(self.seat.records.count)).then(|| self.seat.victim(self.drawn))?;
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
    pub(super) fn new(seat: &Seat) -> TakeFirst {
        TakeFirst { count: seat.share(seat.records.count), drawn: 0 }
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
