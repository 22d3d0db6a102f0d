//! The engines and their names.

use std::fmt;
use std::str::FromStr;

use heap::{EngineNumber, HeapError, Region};
use pmem::Medium;

/// An engine that can store data.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[non_exhaustive]
pub enum EngineKind {
    /// A persistent hash index for single keys, and a B+tree in volatile memory for ranges (HiKV).
    #[default]
    HiKv,
    /// A persistent hash table with block-sized buckets, written without a log. Small items are stored in the table.
    /// It has no ordered operations (Rewo-Hash).
    RewoHash,
    /// A persistent B+tree: keys are in order immediately after open. Volatile memory holds at most prefixes of some
    /// keys (InK).
    Ink,
    /// An ordered index in volatile memory, and a log that acknowledges a write with one fence (PMEKV).
    Pmekv,
    /// The smallest persistent engine, an example for adding engines. No release includes it.
    #[cfg(feature = "toy")]
    Toy,
}

impl EngineKind {
    /// All engines of this build: the default one, and those enabled by features (`rewo-hash`, `ink`, `pmekv`).
    pub const ALL: &[EngineKind] = &[
        EngineKind::HiKv,
        #[cfg(feature = "rewo-hash")]
        EngineKind::RewoHash,
        #[cfg(feature = "ink")]
        EngineKind::Ink,
        #[cfg(feature = "pmekv")]
        EngineKind::Pmekv,
        #[cfg(feature = "toy")]
        EngineKind::Toy,
    ];

    /// The engines that a build can have.
    const KNOWN: &[EngineKind] = &[
        EngineKind::HiKv,
        EngineKind::RewoHash,
        EngineKind::Ink,
        EngineKind::Pmekv,
        #[cfg(feature = "toy")]
        EngineKind::Toy,
    ];

    /// Returns true if this build has the engine.
    pub(crate) fn is_built(self) -> bool {
        EngineKind::ALL.contains(&self)
    }

    /// Returns the engine with this number, if a build can have it.
    pub(crate) fn numbered(number: EngineNumber) -> Option<EngineKind> {
        EngineKind::KNOWN.iter().copied().find(|kind| kind.number() == number)
    }

    /// Returns true if the engine can cache hot items in volatile memory: [`Options::read_cache_bytes`].
    pub(crate) fn has_read_cache(self) -> bool {
        matches!(self, EngineKind::HiKv | EngineKind::RewoHash)
    }

    /// Returns true if the engine's background can free slots in full buckets ahead of inserts:
    /// [`Tuning::pre_evict`].
    pub(crate) fn has_pre_eviction(self) -> bool {
        self == EngineKind::RewoHash
    }

    /// Returns true if separate threads can write the engine's cache: [`Tuning::read_cache_threads`].
    pub(crate) fn has_read_cache_threads(self) -> bool {
        self == EngineKind::RewoHash
    }

    /// Returns true if the number of pairs in the engine's tree nodes can be set: [`Tuning::tree_order`].
    pub(crate) fn has_tree_order(self) -> bool {
        self == EngineKind::Ink
    }

    /// Returns the engine's number in a store's header.
    pub(crate) fn number(self) -> EngineNumber {
        match self {
            EngineKind::HiKv => EngineNumber::HIKV,
            EngineKind::RewoHash => EngineNumber::REWO_HASH,
            EngineKind::Ink => EngineNumber::INK,
            EngineKind::Pmekv => EngineNumber::PMEKV,
            #[cfg(feature = "toy")]
            EngineKind::Toy => EngineNumber::TOY,
        }
    }

    /// Returns the engine's name in options and stats.
    ///
    /// # Panics
    /// Never: every kind has a name.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.number().name().expect("an engine that has a number has a name")
    }

    /// Returns the engine of the region in `medium`, or an error if another one is requested.
    pub(crate) fn of<M: Medium>(medium: &M, wanted: Option<EngineKind>) -> Result<EngineKind, HeapError> {
        let found = Region::engine(medium)?;
        match (EngineKind::numbered(found), wanted) {
            (Some(kind), None) => Ok(kind),
            (Some(kind), Some(wanted)) if kind == wanted => Ok(kind),
            (_, wanted) => Err(HeapError::WrongEngine { found, wanted: wanted.unwrap_or_default().number() }),
        }
    }
}

impl fmt::Display for EngineKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An error: the name of an engine that this build does not have.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnknownEngine {
    /// The name.
    pub name: String,
}

impl fmt::Display for UnknownEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = EngineKind::ALL.iter().map(|kind| kind.name()).collect();
        write!(f, "there is no engine '{}'; the engines of this build are {}", self.name, names.join(", "))
    }
}

impl std::error::Error for UnknownEngine {}

impl FromStr for EngineKind {
    type Err = UnknownEngine;

    fn from_str(name: &str) -> Result<EngineKind, UnknownEngine> {
        let kind = EngineKind::KNOWN.iter().copied().find(|kind| kind.name() == name);
        kind.ok_or_else(|| UnknownEngine { name: name.to_owned() })
    }
}
