//! Broken twins of this crate's rules (`docs/decisions/0005-canaries-are-asked-of-the-medium.md`).

use pmem::Canary;

/// The image that an undo word names is flushed, but nothing orders it before the word.
pub const IMAGE_NOT_ORDERED: Canary = Canary("ImageNotOrdered");
/// An undo log's run is flushed, but nothing orders it before the change.
pub const LOG_NOT_ORDERED: Canary = Canary("LogNotOrdered");
