//! The Redis serialisation protocol without I/O: requests, and replies in versions 2 and 3.
//!
//! A [`Parser`] receives the bytes of a connection as they arrive and fills [`Requests`]: arguments are ranges of the
//! input, so nothing is copied except inline commands, whose quoting must be removed. [`Reply`] writes replies.
//!
//! Limits and error texts are those of Redis 7, because clients match on them.

mod error;
pub mod glob;
mod inline;
mod limits;
mod number;
mod parser;
mod reply;
mod request;

pub use error::ProtocolError;
pub use inline::split_line;
pub use limits::Limits;
pub use number::{double_text, parse_integer};
pub use parser::Parser;
pub use reply::{Protocol, Reply};
pub use request::{Request, Requests};
