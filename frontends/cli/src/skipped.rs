//! Reports and counts the damaged items that a command skips.

use std::path::Path;

use hikv::Damage;

use crate::failure::{Failure, warn};
use crate::plural::s;

/// The number of skipped items.
#[derive(Default)]
pub(crate) struct Skipped(u64);

impl Skipped {
    /// Reports a skipped item.
    pub(crate) fn skip(&mut self, damage: &Damage) {
        self.0 += 1;
        warn(&format!("skipped at offset {:#x}: {}", damage.offset, damage.what));
    }

    /// Returns a failure if items were skipped.
    pub(crate) fn verdict(self, dir: &Path) -> Result<(), Failure> {
        match self.0 {
            0 => Ok(()),
            count => Err(Failure::Negative(format!("{}: skipped {count} damaged item{}", dir.display(), s(count)))),
        }
    }
}
