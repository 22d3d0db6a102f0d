//! hikv: on a disk it has a journal, in tmpfs none. Order is kept where a workload needs it.

use ::hikv::{Durability, Options};
use bench::Candidate;

use super::Opening;
use crate::cell::Level;
use crate::error::Error;

/// Opens the store, at its medium's own level where none is given.
pub(super) fn open(opening: &Opening<'_>, level: Option<Level>) -> Result<Candidate, Error> {
    let options = Options::new().ordered(opening.is_ordered);
    let options = match level {
        Some(Level::Power) => options.durability(Durability::Power),
        Some(Level::Buffered) => options.durability(Durability::Buffered),
        None => options,
    };
    Ok(Candidate::new(options.open(opening.directory.join("store"))?))
}
