//! Verifying an entire store.

use engine::{Check, Damage, Depth, Error};

use crate::{Ordered, ProgressReply, Store};

/// Progress of a verification.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VerifyProgress {
    /// Items checked so far.
    pub items: u64,
    /// Items in the store.
    pub items_total: u64,
}

/// Result of a verification.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Report {
    /// Number of items checked.
    pub items: u64,
    /// All damage; empty for an undamaged store.
    pub damage: Vec<Damage>,
}

impl Store {
    /// Checks every header, checksum and reference of the store, looks up every key, and compares free space with used
    /// space. Calls `progress` before the first item and from time to time. If `progress` stops it
    /// ([`ProgressReply`]), the report covers the items checked so far. Changes nothing.
    ///
    /// Writers should pause while it runs: an entry that changes during its check can look damaged.
    ///
    /// # Errors
    /// [`Error::Forked`]. Damage is no error: the report lists it.
    pub fn verify<A: ProgressReply>(&self, progress: impl FnMut(VerifyProgress) -> A) -> Result<Report, Error> {
        self.check(Depth::Deep, progress)
    }

    /// Like [`Store::verify`], without reading keys and values: checks the headers of the region, its chunks, segments
    /// and items, and the offsets in entries.
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
        // If damage prevents the count, the total is the known number, and the report will list the damage.
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
    /// Checks the ordered index, and that it has the same keys as the hash index. Writers should pause while it runs,
    /// as for [`Store::verify`].
    ///
    /// # Errors
    /// [`Error::Corrupt`] if an item cannot be read. The report lists all other damage.
    pub fn verify(&self) -> Result<Report, Error> {
        let mut damage = Vec::new();
        let items = self.caught_up()?.check_order(&mut |found| damage.push(found))?;
        Ok(Report { items, damage })
    }
}
