//! The durability of a medium's writes, and the points of its history that a caller can wait for.

use core::fmt;

/// The failures that a medium's acknowledged writes survive.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Durability {
    /// A killed process, by any signal; not a crash of the machine.
    Process,
    /// A killed process. A power loss drops the latest writes: a later write goes before an earlier one.
    Buffered,
    /// A power loss.
    Power,
}

impl Durability {
    /// Returns the name in statistics, banners and options: `process`, `buffered` or `power`.
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

/// The time at which a commit counts as done.
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
    /// Returns true if there is nothing to wait for, as on memory, where a commit is done when it returns.
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
    /// The medium has failed and accepts no more words: memory keeps its earlier words.
    No,
}

/// The result of [`Acknowledge::acknowledge`](crate::Acknowledge::acknowledge).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum Waited {
    /// The point is durable.
    Durable,
    /// It is not durable, or not yet: the function that called the caller waits for it, and reports nothing before.
    /// Marks that something is not durable stay.
    Deferred,
}
