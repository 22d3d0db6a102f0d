//! Scans: one page at a time, of one leaf or a part of it. No lock is held between two pages: the next page begins
//! where the last one ended. Every key is shown with the value that it had at some time during the scan, in order, at
//! most once.
//!
//! A scan remembers its position (`place.rs`), so the next page rarely needs a descent from the root.

mod page;
mod place;
mod visit;

pub use page::{Direction, Ended, Page};
pub use place::Scan;
