//! hikv's engines: with a journal on a disk, without one in tmpfs. The HiKV engine keeps order if a workload needs it;
//! other engines always or never do.

use ::hikv::{Durability, EngineKind, Options};
use bench::Candidate;

use super::Opening;
use crate::cell::Level;
use crate::error::Error;

/// Opens the store, at its medium's own level if `level` is `None`.
pub(super) fn open(opening: &Opening<'_>, engine: EngineKind, level: Option<Level>) -> Result<Candidate, Error> {
    let options = Options::new().engine(engine).ordered(opening.is_ordered && engine == EngineKind::HiKv);
    let options = match level {
        Some(Level::Power) => options.durability(Durability::Power),
        Some(Level::Buffered) => options.durability(Durability::Buffered),
        None => options,
    };
    let options = match opening.memory {
        Some(memory) => options.memory_bytes_max(memory.bytes).read_cache_bytes(memory.read_cache_bytes),
        None => options,
    };
    Ok(Candidate::new(options.open(opening.directory.join("store"))?))
}
