//! The medium: every store to persistent memory, and the operations that make it durable.
//!
//! | trait | answers |
//! |---|---|
//! | [`Bytes`] | the content |
//! | [`Persist`] | the durable content, and the order in which it becomes durable |
//! | [`Acknowledge`] | the time at which the caller learns that a write is durable |
//! | [`Residency`] | the bytes that are in memory, and the bytes that were lost |
//! | [`Space`] | the space that the region uses |
//!
//! A medium implements each trait; only methods without a default are required.

mod acknowledge;
mod bytes;
mod persist;
mod residency;
mod space;

use crate::{Canary, Counts};

pub use acknowledge::Acknowledge;
pub use bytes::Bytes;
pub use persist::Persist;
pub use residency::Residency;
pub use space::Space;

/// Persistent memory: a region of bytes, the stores to it, and their durability.
pub trait Medium: Acknowledge + Residency + Space {
    /// Returns a short name for statistics and banners, such as `tmpfs` or `dax`.
    fn name(&self) -> &'static str;

    /// Returns true if stores become durable through a log: the file behind the region is not a complete region
    /// without the log, and the region's format records that. Engines use the consequences:
    /// [`Persist::opens_durable`], [`Acknowledge::deferred`].
    fn is_journaled(&self) -> bool {
        false
    }

    /// Lets other threads run. A caller in the middle of a long walk calls it, holding only locks that other
    /// threads wait for by [`Backoff`](crate::Backoff). For hosts that do not preempt their threads, such as a
    /// kernel.
    #[inline(always)]
    fn yield_to_scheduler(&self) {}

    /// Returns the medium's counts of flushes and fences, if it counts them.
    fn counts(&self) -> Option<Counts> {
        None
    }

    /// Calls [`Persist::order`], except in the broken variant `canary`.
    #[inline(always)]
    fn order_unless(&self, canary: Canary) {
        if !self.breaks(canary) {
            self.order();
        }
    }

    /// Returns true on a crash medium that was configured to break this step; see [`Canary`].
    #[inline(always)]
    fn breaks(&self, _canary: Canary) -> bool {
        false
    }
}
