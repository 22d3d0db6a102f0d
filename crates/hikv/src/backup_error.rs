//! Why a backup, a restore or a conversion fails.

use std::path::PathBuf;
use std::{fmt, io};

use engine::{Damage, Error};

use crate::OpenError;

/// Why there is no backup, or nothing restored.
#[derive(Debug)]
#[non_exhaustive]
pub enum BackupError {
    /// What was to be made is there already.
    Exists {
        /// The path.
        path: PathBuf,
    },
    /// Something else is where a backup was to be, or its unfinished directory.
    Occupied {
        /// What.
        path: PathBuf,
        /// Why it is taken for something else.
        why: String,
    },
    /// A backup that replaces an earlier one cannot be there.
    Place {
        /// Where.
        path: PathBuf,
        /// Why.
        why: &'static str,
    },
    /// What was to be restored is damaged.
    Damaged {
        /// The store.
        path: PathBuf,
        /// Where and what.
        damage: Vec<Damage>,
    },
    /// One of the two stores does not open, or the new one cannot be made.
    Open(OpenError),
    /// The store could not be read.
    Read(Error),
    /// The new store could not be written.
    Write {
        /// Its directory.
        path: PathBuf,
        /// Why.
        error: Error,
    },
    /// The stream could not be written.
    Stream(io::Error),
    /// The callback that is shown progress stopped it ([`crate::ProgressReply`]).
    Stopped,
}

impl fmt::Display for BackupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BackupError::Exists { path } => {
                write!(f, "{} is there already: nothing is overwritten; name a new directory", path.display())
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
            BackupError::Stream(error) => write!(f, "the stream cannot be written: {error}"),
            BackupError::Stopped => f.write_str("stopped; nothing of the new store is left"),
        }
    }
}

impl std::error::Error for BackupError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            BackupError::Open(error) => Some(error),
            BackupError::Read(error) | BackupError::Write { error, .. } => Some(error),
            BackupError::Stream(error) => Some(error),
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
