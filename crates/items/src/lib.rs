//! Items: a key and its value in one piece of a region. All engines write, read and check items with this crate.
//!
//! An item is written completely, past the cache, into space that no other thread sees, and never changes once
//! something refers to it. So a reader may read an item without a lock as long as the item's space is not reused.
//!
//! This crate uses only `core`. Exception: conversions from the operating system's time (feature `std`).
#![no_std]

#[cfg(any(test, feature = "std"))]
extern crate std;

mod broken;
pub mod canary;
mod error;
mod expiry;
mod item;
pub mod layout;
mod new_item;
mod plain;
mod prefetch;

pub use error::ItemError;
pub use expiry::Expiry;
pub use item::Item;
pub use new_item::{NewItem, copy, restamp};
pub use plain::Plain;
pub use prefetch::{prefetch, prefetch_ahead, request};

/// The longest key, in bytes.
pub const KEY_BYTES_MAX: usize = 65_535;
/// The longest value, in bytes: 1 GiB.
pub const VALUE_BYTES_MAX: u64 = 1 << 30;
