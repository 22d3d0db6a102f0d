//! Our engines: on a disk with a journal, in tmpfs with none. HiKV keeps order where a workload needs it; others have it or do not.

use ::hikv::{Durability, EngineKind, Options};
use bench::Candidate;

use super::Opening;
use crate::cell::Level;
use crate::error::Error;

/// Opens the store, at its medium's own level where none is given.
pub(super) fn open(opening: &Opening<'_>, engine: EngineKind, level: Option<Level>) -> Result<Candidate, Error> {
    let options = Options::new().engine(engine).ordered(opening.is_ordered && engine == EngineKind::HiKv);
    let options = match level {
        Some(Level::Power) => options.durability(Durability::Power),
        Some(Level::Buffered) => options.durability(Durability::Buffered),
        None => options,
    };
    Ok(Candidate::new(options.open(opening.directory.join("store"))?))
}
