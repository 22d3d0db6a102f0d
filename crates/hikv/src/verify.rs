//! Checking a whole store.

use engine::{Cursor, Damage, Error};

use crate::{Ordered, Store};

/// How far a verification has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VerifyProgress {
    /// Items checked so far.
    pub items: u64,
    /// Items in the store.
    pub items_total: u64,
}

/// What a verification found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Report {
    /// Items checked.
    pub items: u64,
    /// What is wrong; empty for a sound store.
    pub damage: Vec<Damage>,
}

impl Store {
    /// Checks every header, checksum and reference in the store, and tells `progress` about it now and then. Writers
    /// should rest meanwhile: an entry that changes while it is checked can look damaged.
    ///
    /// # Errors
    /// [`Error::Forked`]. Damage is no error: it is in the report.
    pub fn verify(&self, mut progress: impl FnMut(VerifyProgress)) -> Result<Report, Error> {
        let engine = self.engine()?;
        let items_total = engine.len()?;
        let mut report = Report { items: 0, damage: Vec::new() };
        let mut cursor = Cursor::default();
        while !cursor.is_done() {
            let step = engine.check(cursor, &mut |damage| report.damage.push(damage))?;
            cursor = step.cursor;
            report.items += step.item_count;
            progress(VerifyProgress { items: report.items, items_total });
        }
        Ok(report)
    }
}

impl Ordered {
    /// Checks the ordered index, and that it has the keys that the hash index has. Writers should rest meanwhile, as for
    /// [`Store::verify`].
    ///
    /// # Errors
    /// See [`Error`]; an item that cannot be read is one. Other damage is in the report.
    pub fn verify(&self) -> Result<Report, Error> {
        let mut damage = Vec::new();
        let items = self.caught_up()?.check_order(&mut |found| damage.push(found))?;
        Ok(Report { items, damage })
    }
}
