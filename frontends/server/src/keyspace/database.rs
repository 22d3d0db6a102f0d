//! Database numbers. A `Database` always exists, wherever its number came from: queued requests of a transaction may
//! contain numbers that no command has checked yet.

use std::fmt;

use super::namespace::DATABASE_COUNT;

/// One of the databases.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Database(u8);

impl Database {
    /// The initial database of every client.
    pub(crate) const FIRST: Database = Database(0);

    pub(crate) fn all() -> impl Iterator<Item = Database> {
        (0..DATABASE_COUNT as u8).map(Database)
    }

    /// Returns the database of this number; `None` if it does not exist.
    pub(crate) fn of(number: i64) -> Option<Database> {
        usize::try_from(number).ok().filter(|number| *number < DATABASE_COUNT).map(|number| Database(number as u8))
    }

    pub(crate) fn number(self) -> u8 {
        self.0
    }

    /// Returns its index, below [`DATABASE_COUNT`].
    #[inline]
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_outside_names_no_database() {
        for number in [-1, 16, 17, 255, 256, 272, i64::MIN, i64::MAX] {
            assert_eq!(Database::of(number), None, "{number}");
        }
        let numbers = (0..DATABASE_COUNT as i64).map(|number| Database::of(number).expect("a database"));
        assert!(numbers.eq(Database::all()));
    }
}
