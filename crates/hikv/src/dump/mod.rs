//! Dumps: the items of a store as a stream of bytes, for pipes and files. Readers detect truncated and changed dumps.
//!
//! A dump consists of a header, blocks and an end, each with a checksum; the end also has a checksum of all preceding
//! bytes (`docs/format/dump.md`). Neither writer nor reader seeks, or holds more than one block in memory: values
//! longer than [`layout::WHOLE_VALUE_BYTES_MAX`] are written and read in pieces.
//!
//! # Invariants
//! - [`DumpReader::next_item`] returns `None` only after the entire dump was read and all of it was correct. A
//!   truncated stream ends with an error, however many items were read before.
//! - A dump needs an end. A [`DumpWriter`] that is dropped before [`DumpWriter::finish`] leaves a truncated dump.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use hikv::dump::{DumpReader, DumpValue, DumpWriter};
//!
//! let mut writer = DumpWriter::new(Vec::new(), [7; 16])?;
//! writer.put(b"answer", b"42", None)?;
//! assert_eq!(writer.item_count(), 1);
//! let bytes = writer.finish()?;
//!
//! let mut reader = DumpReader::new(&bytes[..])?;
//! assert_eq!(reader.uuid(), [7; 16]);
//! assert!(!reader.has_trees());
//! let item = reader.next_item()?.expect("there is one");
//! assert_eq!(item.key, b"answer");
//! match item.value {
//!     DumpValue::Whole(value) => assert_eq!(value, b"42"),
//!     DumpValue::Pieces(pieces) => println!("a long value of {} bytes", pieces.left_bytes()),
//! }
//! assert!(reader.next_item()?.is_none());
//! assert_eq!((reader.item_count(), reader.done_bytes()), (1, bytes.len() as u64));
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
