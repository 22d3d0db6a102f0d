//! Checking a whole store.

use engine::{Check, Damage, Depth, Error};

use crate::{Ordered, ProgressReply, Store};

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
    /// Checks every header, checksum and reference in the store, looks every key up, compares what is free with what is
    /// named, and tells `progress` about it, before the first item and now and then. Writers should rest meanwhile: an entry that changes while it is
    /// checked can look damaged. Nothing is changed. Where `progress` stops it ([`ProgressReply`]), the report has what was checked.
    ///
    /// # Errors
    /// [`Error::Forked`]. Damage is no error: it is in the report.
    pub fn verify<A: ProgressReply>(&self, progress: impl FnMut(VerifyProgress) -> A) -> Result<Report, Error> {
        self.check(Depth::Deep, progress)
    }

    /// As [`Store::verify`], without reading keys and values: the headers of the region, its chunks, segments and items,
    /// and the places that entries name.
    ///
    /// # Errors
    /// As for [`Store::verify`].
    pub fn verify_headers<A: ProgressReply>(&self, progress: impl FnMut(VerifyProgress) -> A) -> Result<Report, Error> {
        self.check(Depth::Quick, progress)
    }

    fn check<A: ProgressReply>(
        &self,
        depth: Depth,
        mut progress: impl FnMut(VerifyProgress) -> A,
    ) -> Result<Report, Error> {
        let engine = self.engine()?;
        // Where damage keeps the items from being counted the report has to say so, and the total is what is known.
        let items_total = match engine.len() {
            Err(Error::Corrupt { .. }) => engine.stats().items,
            counted => counted?,
        };
        let (mut damage, mut check) = (Vec::new(), Check::new(depth));
        while progress(VerifyProgress { items: check.item_count(), items_total }).goes_on() && !check.is_done() {
            engine.check(&mut check, &mut |found| damage.push(found))?;
        }
        Ok(Report { items: check.item_count(), damage })
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
