//! The medium: every store to persistent memory, and what makes it durable.
//!
//! | trait | asks |
//! |---|---|
//! | [`Bytes`] | what is there |
//! | [`Persist`] | what is durable, and before what |
//! | [`Acknowledge`] | when the caller is told so |
//! | [`Residency`] | what is in memory, what is lost |
//! | [`Space`] | what room it takes |
//!
//! A medium implements each; what a trait requires is what has no default.

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
    /// A short name for stats and banners, such as `tmpfs` or `dax`.
    fn name(&self) -> &'static str;

    /// True where stores become durable through a log: the file behind the region is not the region by itself, which the region's
    /// format says. Engines ask what follows from it: [`Persist::opens_durable`], [`Acknowledge::deferred`].
    fn is_journaled(&self) -> bool {
        false
    }

    /// The caller is in the middle of a long walk, and holds no lock but such as others wait for by [`Backoff`](crate::Backoff): a host that
    /// takes no processor away from its threads by itself, as a kernel, lets others run.
    #[inline(always)]
    fn breathe(&self) {}

    /// How often the medium flushed and fenced, if it counts them.
    fn counts(&self) -> Option<Counts> {
        None
    }

    /// True on a crash medium that was asked to break this step; see [`Canary`].
    #[inline(always)]
    fn breaks(&self, _canary: Canary) -> bool {
        false
    }
}
