//! The table of controllers, by their numbers.
//!
//! A number is reused as late as possible. A host may still remember a controller of a broken path, and refuses a new
//! one with the same number until its own reconnect attempt is over.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::controller::Controller;

/// The highest controller number; higher ones have a special meaning in Connect.
const NUMBER_MAX: u16 = 0xffef;

/// The existing controllers.
#[derive(Default)]
pub(crate) struct Table {
    by_number: BTreeMap<u16, Arc<Controller>>,
    /// The last assigned number.
    last: u16,
}

impl Table {
    pub(crate) fn len(&self) -> usize {
        self.by_number.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Controller>> {
        self.by_number.values()
    }

    pub(crate) fn get(&self, number: u16) -> Option<Arc<Controller>> {
        self.by_number.get(&number).map(Arc::clone)
    }

    pub(crate) fn remove(&mut self, number: u16) {
        self.by_number.remove(&number);
    }

    /// Adds a controller with a new number. A free number must exist.
    pub(crate) fn add(&mut self, make: impl FnOnce(u16) -> Controller) -> Arc<Controller> {
        loop {
            self.last = if self.last < NUMBER_MAX { self.last + 1 } else { 1 };
            if !self.by_number.contains_key(&self.last) {
                break;
            }
        }
        let controller = Arc::new(make(self.last));
        self.by_number.insert(self.last, Arc::clone(&controller));
        controller
    }
}

#[cfg(test)]
mod tests {
    use nvme::ControllerKind;

    use super::*;

    #[test]
    fn numbers_come_again_late() {
        let mut table = Table::default();
        let add = |table: &mut Table| {
            table.add(|number| Controller::new(number, ControllerKind::Io, ("a".to_owned(), [7; 16]), 0)).number
        };
        let kept = add(&mut table);
        for expected in kept + 1..=NUMBER_MAX {
            assert_eq!(add(&mut table), expected);
            table.remove(expected);
        }
        assert_eq!(add(&mut table), kept + 1, "the first is in use");
    }
}
