//! Verifying an entire store.

use engine::{Check, Damage, Depth, Engine, Error};

#[cfg(doc)]
use crate::Store;
use crate::{CallbackReply, Ordered};

/// Progress of a verification.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
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

/// Checks the store, and calls `progress` after each part, until it stops the check.
pub(crate) fn check<A: CallbackReply>(
    engine: &dyn Engine,
    depth: Depth,
    mut progress: impl FnMut(VerifyProgress) -> A,
) -> Result<Report, Error> {
    // If damage prevents the count, the total is the known number, and the report will list the damage.
    let items_total = match engine.len() {
        Err(Error::Corrupt { .. }) => engine.stats().items,
        counted => counted?,
    };
    let (mut damage, mut check) = (Vec::new(), Check::new(depth));
    while progress(VerifyProgress { items: check.item_count(), items_total }).flow().is_continue() && !check.is_done() {
        engine.check(&mut check, &mut |found| damage.push(found))?;
    }
    if depth == Depth::Deep && check.is_done() && damage.is_empty() {
        catalog::check(engine, &mut |what| damage.push(Damage { offset: 0, what }))?;
    }
    Ok(Report { items: check.item_count(), damage })
}
