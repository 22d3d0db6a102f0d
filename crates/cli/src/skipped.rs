//! What a command leaves out of a damaged store, said and counted.

use std::path::Path;

use hikv::Damage;

use crate::failure::{Failure, warn};
use crate::plural::s;

/// How much was left out.
#[derive(Default)]
pub(crate) struct Skipped(u64);

impl Skipped {
    /// Says what is left out.
    pub(crate) fn skip(&mut self, damage: &Damage) {
        self.0 += 1;
        warn(&format!("skipped at offset {:#x}: {}", damage.offset, damage.what));
    }

    /// What the command comes to.
    pub(crate) fn verdict(self, dir: &Path) -> Result<(), Failure> {
        match self.0 {
            0 => Ok(()),
            count => Err(Failure::Negative(format!("{}: {count} damaged item{} left out", dir.display(), s(count)))),
        }
    }
}
