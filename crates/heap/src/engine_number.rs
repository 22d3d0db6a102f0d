//! The engine that a region belongs to, as a number.

use core::fmt;

/// The number of the engine that a region belongs to, as its superblock states it. It says what the region's engine area and
/// the places in its chunks mean.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct EngineNumber(pub u32);

impl EngineNumber {
    /// HiKV: a persistent hash index, ordered in volatile memory.
    pub const HIKV: EngineNumber = EngineNumber(1);
    /// Rewo-Hash: a log-free hash table, cached in volatile memory.
    pub const REWO_HASH: EngineNumber = EngineNumber(2);
    /// InK: a persistent B+tree.
    pub const INK: EngineNumber = EngineNumber(3);
    /// PMEKV: the engine of a storage device.
    pub const PMEKV: EngineNumber = EngineNumber(4);
    /// The smallest engine that persists, which shows how one is added. No release has it.
    pub const TOY: EngineNumber = EngineNumber(255);

    /// Each with its name.
    pub const NAMED: &[(EngineNumber, &str)] = &[
        (EngineNumber::HIKV, "hikv"),
        (EngineNumber::REWO_HASH, "rewo-hash"),
        (EngineNumber::INK, "ink"),
        (EngineNumber::PMEKV, "pmekv"),
        (EngineNumber::TOY, "toy"),
    ];

    /// The engine's name, if this program knows the number.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        EngineNumber::NAMED.iter().find(|(number, _)| *number == self).map(|(_, name)| *name)
    }
}

impl fmt::Display for EngineNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "number {}", self.0),
        }
    }
}
