//! The engine that a region belongs to, as a number.

use core::fmt;

/// The number of the engine that a region belongs to, as recorded in its superblock. It defines the meaning of the
/// region's engine area and of the places in its chunks.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct EngineNumber(pub u32);

impl EngineNumber {
    /// HiKV: a persistent hash index, with the order of keys in DRAM.
    pub const HIKV: EngineNumber = EngineNumber(1);
    /// Rewo-Hash: a log-free hash table, cached in DRAM.
    pub const REWO_HASH: EngineNumber = EngineNumber(2);
    /// InK: a persistent B+tree.
    pub const INK: EngineNumber = EngineNumber(3);
    /// PMEKV: the engine of a storage device.
    pub const PMEKV: EngineNumber = EngineNumber(4);
    /// The smallest engine that persists, an example of how to add one. No release has it.
    pub const TOY: EngineNumber = EngineNumber(255);

    /// Every engine with its name.
    pub const NAMED: &[(EngineNumber, &str)] = &[
        (EngineNumber::HIKV, "hikv"),
        (EngineNumber::REWO_HASH, "rewo-hash"),
        (EngineNumber::INK, "ink"),
        (EngineNumber::PMEKV, "pmekv"),
        (EngineNumber::TOY, "toy"),
    ];

    /// Returns the engine's name, if this program has one for the number.
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
