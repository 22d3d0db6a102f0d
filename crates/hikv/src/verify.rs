//! Verifying an entire store.

use engine::{Damage, Error};

use crate::Ordered;
#[cfg(doc)]
use crate::Store;

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
