//! Errors of backups, restores and conversions.

use std::path::PathBuf;
use std::{fmt, io};

use engine::{Damage, Error};

use crate::OpenError;

/// An error of a backup, a restore or a conversion.
#[derive(Debug)]
#[non_exhaustive]
pub enum BackupError {
    /// The path of the new store already exists.
    Exists {
        /// The path.
        path: PathBuf,
    },
    /// The path of a backup, or of its unfinished directory, holds other files.
    Occupied {
        /// The path.
        path: PathBuf,
        /// The reason why it is not replaced.
        why: String,
    },
    /// The path is unsuitable for a backup that replaces earlier ones.
    Place {
        /// The path.
        path: PathBuf,
        /// The reason.
        why: &'static str,
    },
    /// The store to restore or convert is damaged.
    Damaged {
        /// The store's path.
        path: PathBuf,
        /// All damage.
        damage: Vec<Damage>,
    },
    /// One of the two stores cannot be opened or created.
    Open(OpenError),
    /// The store cannot be read.
    Read(Error),
    /// The new store cannot be written.
    Write {
        /// The new store's directory.
        path: PathBuf,
        /// The reason.
        error: Error,
    },
    /// The stream cannot be written.
    Stream(io::Error),
    /// The progress callback stopped the operation ([`crate::CallbackReply`]).
    Stopped,
}

impl fmt::Display for BackupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BackupError::Exists { path } => {
                write!(f, "{} already exists, and nothing is overwritten; name a new directory", path.display())
            }
            BackupError::Occupied { path, why } => {
                write!(f, "{} is in the way, and nothing is removed: {why}; move it away", path.display())
            }
            BackupError::Place { path, why } => write!(f, "{} cannot hold the latest backup: {why}", path.display()),
            BackupError::Damaged { path, damage } => {
                let places = damage.len();
                let s = if places == 1 { "" } else { "s" };
                write!(f, "{} is damaged in {places} place{s}, so nothing is restored from it", path.display())?;
                damage.first().map_or(Ok(()), |first| write!(f, "; at offset {:#x}: {}", first.offset, first.what))
            }
            BackupError::Open(error) => error.fmt(f),
            BackupError::Read(error) => error.fmt(f),
            BackupError::Write { path, error } => write!(f, "{}: {error}", path.display()),
            BackupError::Stream(error) => write!(f, "cannot write the stream: {error}"),
            BackupError::Stopped => f.write_str("stopped; nothing of the new store is left"),
        }
    }
}

impl std::error::Error for BackupError {
    /// Returns the source of the inner error, because `Display` includes the inner error's own text.
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            BackupError::Open(error) => error.source(),
            BackupError::Read(error) | BackupError::Write { error, .. } => error.source(),
            BackupError::Stream(error) => error.source(),
            _ => None,
        }
    }
}

impl From<OpenError> for BackupError {
    fn from(error: OpenError) -> BackupError {
        BackupError::Open(error)
    }
}

impl From<Error> for BackupError {
    fn from(error: Error) -> BackupError {
        BackupError::Read(error)
    }
}
