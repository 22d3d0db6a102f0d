//! The crash medium: a region in anonymous memory that knows what a loss of power may leave of it, at every step.
//!
//! [`Sim`] is a [`pmem::Medium`] for tests. It keeps, beside the memory that programs load from, what is *surely durable*
//! and what is *pending*. [`Sim::images`] gives the crash images possible at this moment, [`Sim::from_image`] a medium to
//! recover on, and [`Sim::observe`] a call after every step.
//!
//! Two models, and every engine passes both:
//!
//! - [`Model::Line`] is memory behind a cache. Each 64-byte line keeps the ordered contents from the last surely durable
//!   one on, by 8-byte units. Caches write back at any time, so at a crash each line independently shows any of them. A
//!   flush and then a fence *of the same thread* make a line's contents at the flush the least that survives. A copy of
//!   several units may run upwards or downwards (`memcpy` does either, stores past the cache any), so a crash inside it
//!   keeps a prefix or a suffix of the copy's units in that line. A locked instruction is no fence.
//! - [`Model::Span`] is a log with memory before it. Each flush appends the flushed bytes, each publish its words. A crash
//!   keeps a prefix of the log, at least as far as the last commit that was waited for. What was stored and never flushed
//!   is lost; `order` does nothing.
//!
//! A process may be killed, too, while the machine runs on ([`Sim::killed`]): the next one sees all that was stored, and a loss of power
//! later may still take what nobody made durable.
//!
//! Growth is durable when it returns, and the new bytes are zero.
//!
//! Pages that are discarded hold garbage from then on: in the line model in every image at once, since no fence holds a
//! file system back; in the span model from their place in the log on. That such pages may also come back with the old
//! contents shows nothing new, since an image from before the call has them so. A store to one panics before space is
//! taken again.
//!
//! [`SimDisk`] is two files on a disk, for the journal: see its head. The explorer takes either for what it is: [`Crashable`].

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

pub use crashable::{CrashImage, Crashable, ObserverOf};
pub use disk::{DiskImage, Fault, SimDisk, SimFile};
pub use image::Image;
pub use memory::REGION_BYTES_MAX;
pub use model::Model;
pub use sim::{Observer, Sim, StepKind};
pub use sim_dram::SimDram;
pub use steps::unobserved;
