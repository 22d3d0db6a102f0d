//! The engines by name.

use std::fmt;
use std::str::FromStr;

use heap::{EngineNumber, HeapError, Region};
use pmem::Medium;

/// An engine that can keep a store.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[non_exhaustive]
pub enum EngineKind {
    /// A persistent hash index for single keys, and a B+tree in volatile memory for ranges (HiKV).
    #[default]
    HiKv,
    /// A persistent hash table of buckets of a block, written without a log: small items lie in it, and nothing has an order
    /// (Rewo-Hash).
    RewoHash,
    /// A persistent B+tree: keys in order at once, and of them in volatile memory no more than what some begin with (InK).
    Ink,
    /// An ordered index in volatile memory, and a log that acknowledges a write with one fence (PMEKV).
    Pmekv,
    /// The smallest engine that persists, which shows how an engine is added. No release has it.
    #[cfg(feature = "toy")]
    Toy,
}

impl EngineKind {
    /// The engines of this build: the default one, and those whose features are on (`rewo-hash`, `ink`, `pmekv`).
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

    /// Whether this build has the engine.
    pub(crate) fn is_built(self) -> bool {
        EngineKind::ALL.contains(&self)
    }

    /// The engine of this number, if a build can have it.
    pub(crate) fn numbered(number: EngineNumber) -> Option<EngineKind> {
        EngineKind::KNOWN.iter().copied().find(|kind| kind.number() == number)
    }

    /// Whether it keeps copies of hot items in volatile memory: [`Options::read_cache_bytes`].
    pub(crate) fn has_read_cache(self) -> bool {
        matches!(self, EngineKind::HiKv | EngineKind::RewoHash)
    }

    /// Whether its background makes room in full buckets ahead of inserts: [`Options::pre_evict`].
    pub(crate) fn has_pre_eviction(self) -> bool {
        self == EngineKind::RewoHash
    }

    /// Whether threads of its own may write them: [`Options::read_cache_threads`].
    pub(crate) fn has_read_cache_threads(self) -> bool {
        self == EngineKind::RewoHash
    }

    /// Whether its tree's nodes may have other numbers of keys: [`Options::tree_order`].
    pub(crate) fn has_tree_order(self) -> bool {
        self == EngineKind::Ink
    }

    /// Its number in a store's first bytes.
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

    /// Its name in options and stats.
    ///
    /// # Panics
    /// Never: every kind has a name.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.number().name().expect("an engine that has a number has a name")
    }

    /// The kind that keeps the region of `medium`, whichever was asked for.
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

/// A name that is no engine's of this build.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnknownEngine {
    /// The name.
    pub name: String,
}

impl fmt::Display for UnknownEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = EngineKind::ALL.iter().map(|kind| kind.name()).collect();
        write!(f, "there is no engine '{}'; there is {}", self.name, names.join(", "))
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
