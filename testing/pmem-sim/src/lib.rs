//! The crash medium: a region in anonymous memory that records, at every step, the states that a power loss may
//! leave.
//!
//! [`Sim`] is a [`pmem::Medium`] for tests. In addition to the memory that programs load from, it keeps the *surely
//! durable* and the *pending* contents. [`Sim::images`] returns the crash images possible at this moment,
//! [`Sim::from_image`] a medium to recover on, and [`Sim::observe`] calls an observer after every step.
//!
//! There are two models of memory, and every engine passes both:
//!
//! - [`Model::Line`] is memory behind a cache. Each 64-byte line keeps its ordered contents from the last surely
//!   durable one on, by 8-byte units. Caches write back at any time, so at a crash each line independently shows
//!   any of them. A flush and then a fence *of the same thread* make a line's contents at the flush the least that
//!   survives. A copy of several units may run upwards or downwards (`memcpy` does either, non-temporal stores
//!   any), so a crash inside it keeps a prefix or a suffix of the copy's units in that line. A locked instruction
//!   is not a fence.
//! - [`Model::Span`] is a log with memory before it. Each flush appends the flushed bytes, each publish its words.
//!   A crash keeps a prefix of the log, at least up to the last commit that was waited for. Stores that were never
//!   flushed are lost; `order` does nothing.
//!
//! A process may also be killed while the machine runs on ([`Sim::killed`]): the next process sees all stores, and
//! a later power loss may still take those that were never made durable.
//!
//! Growth is durable when it returns, and the new bytes are zero.
//!
//! Discarded pages hold garbage from then on: in the line model immediately in every image, because no fence holds
//! a file system back; in the span model from their position in the log on. Such pages may also come back with the
//! old contents, but that shows nothing new, because an image from before the call has them so. A store to a
//! discarded page panics before space is allocated again.
//!
//! [`SimDisk`] is two files on a disk, for the journal: see its head. The explorer handles both kinds:
//! [`Crashable`].

mod agent;
mod choice;
mod crashable;
mod disk;
mod image;
mod line_model;
mod medium;
mod memory;
mod model;
mod pages;
mod sim;
mod sim_dram;
mod span_model;
mod steps;

pub use agent::is_observing;
pub use crashable::{CrashImage, Crashable, ObserverOf};
pub use disk::{DiskImage, Fault, SimDisk, SimFile};
pub use image::Image;
pub use memory::REGION_BYTES_MAX;
pub use model::Model;
pub use sim::{Observer, Sim, StepKind};
pub use sim_dram::SimDram;
pub use steps::unobserved;
