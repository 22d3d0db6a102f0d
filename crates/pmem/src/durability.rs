//! How durable a medium makes what is written, and the points of its history that can be waited for.

use core::fmt;

/// What a medium's acknowledged writes survive.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Durability {
    /// The death of the process, by whatever signal; not of the machine.
    Process,
    /// The death of the process; and loss of power, which takes the last moments' writes, the later before the earlier.
    Buffered,
    /// Loss of power.
    Power,
}

impl Durability {
    /// The name in stats, banners and options: `process`, `buffered` or `power`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Durability::Process => "process",
            Durability::Buffered => "buffered",
            Durability::Power => "power",
        }
    }
}

impl fmt::Display for Durability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// When a commit counts as done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Level {
    /// As durable as the medium can make it.
    #[default]
    Strongest,
}

/// A point in a medium's history that [`Persist::wait`](crate::Persist::wait) can wait for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Ticket(pub u64);

impl Ticket {
    /// True if there is nothing to wait for, as on memory, where a commit is done when it returns.
    #[inline(always)]
    #[must_use]
    pub const fn is_done(self) -> bool {
        self.0 == 0
    }
}

/// The answer of a medium to words that are to be published.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use = "a medium that has failed stores none of the words: the caller leaves everything as it was"]
pub enum Taken {
    /// The words are visible, and durable with the next commit.
    Yes,
    /// The medium has failed, and takes nothing in any more: memory has the words that it had.
    No,
}

/// What came of [`Acknowledge::acknowledge`](crate::Acknowledge::acknowledge).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum Waited {
    /// The point is durable.
    Durable,
    /// It is not, or not yet: the caller's caller is going to wait for it, and tells nobody before. Whatever says that
    /// something is not durable stays.
    Deferred,
}
