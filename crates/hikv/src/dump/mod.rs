//! Dumps: the items of a store as a stream of bytes that can be piped, and that is told from a torn or changed one.
//!
//! A dump is a header, blocks and an end, each with a checksum of its own; the end has one over everything before it
//! (`docs/format/dump.md`). Neither writer nor reader seeks, or holds more than a block in memory: values of more than
//! [`layout::WHOLE_VALUE_BYTES_MAX`] go out and come in in pieces.
//!
//! # Invariants
//! - [`DumpReader::next_item`] answers `None` only once everything was read, in its place, and as written. So a stream
//!   that was cut short ends with an error, however many items it gave before.
//! - A dump without an end is none: a [`DumpWriter`] that is dropped unfinished leaves one.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use hikv::dump::{DumpReader, DumpWriter};
//!
//! let mut writer = DumpWriter::new(Vec::new(), [7; 16])?;
//! writer.put(b"answer", b"42", None)?;
//! let bytes = writer.finish()?;
//!
//! let mut reader = DumpReader::new(&bytes[..])?;
//! let item = reader.next_item()?.expect("there is one");
//! assert_eq!(item.key, b"answer");
//! assert!(reader.next_item()?.is_none());
//!
//! let mut cut = DumpReader::new(&bytes[..bytes.len() - 1])?;
//! cut.next_item()?;
//! assert!(cut.next_item().is_err());
//! # Ok(())
//! # }
//! ```

mod error;
pub mod layout;
mod read;
mod stream;
mod write;

pub use error::DumpError;
pub use read::{DumpItem, DumpReader, DumpValue, ValuePieces};
pub use write::DumpWriter;
