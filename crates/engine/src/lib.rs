//! Engines: what a store can do, whichever paper it comes from.
//!
//! [`Engine`] is the object-safe seam between the fronts (library, command line, server) and the engines. Values are
//! pushed into a callback: no copy is forced on anyone, and no lifetime crosses a lock.

mod error;

pub use error::{Error, Limits};
