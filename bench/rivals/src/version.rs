//! Version words of nodes, in DRAM or in a leaf: a lock for writers, and a proof for readers that nothing has changed.
//!
//! ```text
//! bit 0  locked     bit 1  obsolete: the node is not part of the tree any more     others: number of changes
//! ```

const LOCKED: u64 = 1;
const OBSOLETE: u64 = 2;
const CHANGE: u64 = 4;

/// The value of a version word at one time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Version(pub(crate) u64);

impl Version {
    /// The first version of a node.
    pub(crate) const FIRST: Version = Version(0);
    /// The first version of a node that its maker has locked.
    pub(crate) const FIRST_LOCKED: Version = Version(LOCKED);

    #[inline(always)]
    pub(crate) fn is_stable(self) -> bool {
        self.0 & (LOCKED | OBSOLETE) == 0
    }

    pub(crate) fn is_locked(self) -> bool {
        self.0 & LOCKED != 0
    }

    pub(crate) fn locked(self) -> Version {
        Version(self.0 | LOCKED)
    }

    /// Returns the version after a change.
    pub(crate) fn unlocked(self) -> Version {
        Version((self.0 & !LOCKED) + CHANGE)
    }

    pub(crate) fn obsolete(self) -> Version {
        Version(self.unlocked().0 | OBSOLETE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_differ_and_locks_show() {
        let locked = Version::FIRST.locked();
        assert!(locked.is_locked() && !locked.is_stable() && locked == Version::FIRST_LOCKED);
        assert!(locked.unlocked().is_stable() && locked.unlocked() != Version::FIRST);
        assert!(!locked.obsolete().is_stable() && !locked.obsolete().is_locked());
    }
}
