//! Reading a range in a transaction, with the transaction's own writes.

use std::iter::FusedIterator;
use std::rc::Rc;

use engine::{Direction, Error};

use super::attempt::Attempt;
use crate::ordered::Bounds;
use crate::{Item, Range};

/// An iterator over the items of a range as the transaction sees them: those of the store, with the transaction's own
/// changes. From both ends. Items that the iterator has not reached count as not read, so that a consumer of the first
/// item of a queue does not conflict with its producers.
#[derive(Debug)]
pub struct TxRange<'s> {
    attempt: Rc<Attempt<'s>>,
    /// The number of the tree among those of the attempt.
    part: usize,
    /// The number of the range among those of the tree.
    number: usize,
    rows: Range,
    /// Items of the store that were read from each end, but not handed out.
    front: Option<Item>,
    back: Option<Item>,
    /// The keys between those that were handed out.
    rest: Bounds,
    is_over: bool,
}

impl<'s> TxRange<'s> {
    pub(super) fn new(attempt: &Rc<Attempt<'s>>, part: usize, bounds: Bounds) -> Result<TxRange<'s>, Error> {
        let rows = attempt.part(part).tree().ordered()?.range_within(bounds.clone())?;
        let number = attempt.part_mut(part).begin_range(bounds.clone());
        let is_over = bounds.is_empty();
        Ok(TxRange { attempt: Rc::clone(attempt), part, number, rows, front: None, back: None, rest: bounds, is_over })
    }

    /// Returns the next item of one end.
    fn next_from(&mut self, direction: Direction) -> Result<Option<Item>, Error> {
        while !self.is_over {
            let row = self.row(direction)?;
            let own = self.own(direction);
            let is_own_first = match (&row, &own) {
                (Some((row, _)), Some((own, _))) if direction == Direction::Forward => own <= row,
                (Some((row, _)), Some((own, _))) => own >= row,
                (None, own) => own.is_some(),
                (Some(_), None) => false,
            };
            let is_same = matches!((&row, &own), (Some((row, _)), Some((own, _))) if row == own);
            let item = match own.filter(|_| is_own_first) {
                Some((key, value)) => {
                    match row {
                        Some(row) if is_same => self.note(direction, &row),
                        row => *self.kept(direction) = row,
                    }
                    Some((key, value))
                }
                None => row.map(|row| {
                    self.note(direction, &row);
                    (row.0, Some(row.1))
                }),
            };
            let Some((key, value)) = item else {
                self.is_over = true;
                self.attempt.part_mut(self.part).range_mut(self.number).is_read();
                break;
            };
            match direction {
                Direction::Forward => self.rest.raise(&key),
                Direction::Backward => self.rest.lower(&key),
            }
            if let Some(value) = value {
                self.attempt.part_mut(self.part).range_mut(self.number).rows_mut(direction).reaches(&key);
                return Ok(Some((key, value)));
            }
        }
        Ok(None)
    }

    /// Returns the store's next item of one end. If there is none, the other end may have read the last one.
    fn row(&mut self, direction: Direction) -> Result<Option<Item>, Error> {
        if let Some(kept) = self.kept(direction).take() {
            return Ok(Some(kept));
        }
        let next = match direction {
            Direction::Forward => self.rows.next(),
            Direction::Backward => self.rows.next_back(),
        };
        match next.transpose()? {
            Some(row) => Ok(Some(row)),
            None if direction == Direction::Forward => Ok(self.back.take()),
            None => Ok(self.front.take()),
        }
    }

    fn kept(&mut self, direction: Direction) -> &mut Option<Item> {
        match direction {
            Direction::Forward => &mut self.front,
            Direction::Backward => &mut self.back,
        }
    }

    /// Returns the transaction's next own change of one end, with `None` for a delete.
    fn own(&self, direction: Direction) -> Option<(Vec<u8>, Option<Vec<u8>>)> {
        let part = self.attempt.part(self.part);
        let next = part.change_within(&self.rest, direction == Direction::Backward);
        next.map(|(key, change)| (key.to_vec(), change.value().map(<[u8]>::to_vec)))
    }

    /// Records that an item of the store was read.
    fn note(&self, direction: Direction, (key, value): &Item) {
        self.attempt.part_mut(self.part).range_mut(self.number).rows_mut(direction).add(key, value);
    }

    fn guarded(&mut self, direction: Direction) -> Option<Result<Item, Error>> {
        let next = self.next_from(direction);
        self.is_over |= next.is_err();
        next.transpose()
    }
}

impl Iterator for TxRange<'_> {
    type Item = Result<Item, Error>;

    fn next(&mut self) -> Option<Result<Item, Error>> {
        self.guarded(Direction::Forward)
    }
}

impl DoubleEndedIterator for TxRange<'_> {
    fn next_back(&mut self) -> Option<Result<Item, Error>> {
        self.guarded(Direction::Backward)
    }
}

impl FusedIterator for TxRange<'_> {}
