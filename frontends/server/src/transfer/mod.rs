//! Dumps of Redis, read into a store and written from one that no server has open.

mod export;
mod import;

use std::fmt;

use crate::errors::{FixedError, Refusal};

pub use export::{Export, ExportedCollection};
pub use import::{Import, Imported};

/// The reason why a key cannot be loaded or written.
#[derive(Debug)]
pub enum TransferError {
    /// The dump cannot be read further.
    Dump(rdb::Error),
    /// The output of a dump failed.
    Output(std::io::Error),
    /// The store failed, or refuses the key or its value.
    Store(hikv::Error),
    /// The key or its value cannot be stored, or is damaged in the store.
    Refused(String),
}

impl fmt::Display for TransferError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TransferError::Dump(error) => error.fmt(f),
            TransferError::Output(error) => error.fmt(f),
            TransferError::Store(error) => error.fmt(f),
            TransferError::Refused(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for TransferError {}

impl From<rdb::Error> for TransferError {
    fn from(error: rdb::Error) -> TransferError {
        TransferError::Dump(error)
    }
}

impl From<hikv::Error> for TransferError {
    fn from(error: hikv::Error) -> TransferError {
        TransferError::Store(error)
    }
}

impl From<Refusal> for TransferError {
    fn from(refusal: Refusal) -> TransferError {
        match refusal {
            Refusal::Store(error) => TransferError::Store(error),
            Refusal::Fixed(FixedError::BadFormat) => TransferError::Refused("an element is there twice".into()),
            other => {
                let text = String::from_utf8_lossy(&other.text()).into_owned();
                TransferError::Refused(text.strip_prefix("ERR ").map_or(text.clone(), str::to_owned))
            }
        }
    }
}
