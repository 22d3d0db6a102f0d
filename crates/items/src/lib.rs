//! Items: a key and the value in one piece of a region, as every engine writes, reads and judges them.
//!
//! An item is written whole, past the cache, into space that no other thread sees, and is never changed once something
//! names it. So a reader that is kept from seeing an item's room reused may look at its bytes without a lock.
//!
//! This crate uses `core` alone, but for times of the operating system (feature `std`).
#![no_std]

#[cfg(any(test, feature = "std"))]
extern crate std;

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
pub use prefetch::{prefetch, prefetch_ahead};

/// The longest key, in bytes.
pub const KEY_BYTES_MAX: usize = 65_535;
/// The longest value, in bytes: 1 GiB.
pub const VALUE_BYTES_MAX: u64 = 1 << 30;
