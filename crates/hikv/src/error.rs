//! Why a store does not open.

use std::path::{Path, PathBuf};
use std::{fmt, io};

use engine::OpenError as RegionError;
use heap::HeapError;
use journal::JournalError;
use pmem::Durability;
use pmem_os::{LockError, MapError};

use crate::{EngineKind, handles};

/// How a lock's holder is named that is this process.
const OWN_PROCESS: &str = "this process itself";

/// Advice where a process has no addresses left.
const KEEP_FEWER: &str = "a store keeps 32 GiB of addresses, or as many as Options::region_bytes_max says: close some stores, or name a \
                          smaller value for each";
/// The way out of a damaged store.
const SALVAGED: &str =
    "`hikv repair`, or of another engine `hikv convert --skip-damaged`, makes a new store of what is whole";

/// Why a store does not open. What it holds is as it was: where opening failed late, half of what an opening does anyway may be done
/// (an interrupted change finished, the end of a log written again), and where a store was to be made directories, and files
/// that the next making removes, may be left.
#[derive(Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// There is no store, and none was to be created.
    Missing {
        /// The directory or device.
        path: PathBuf,
    },
    /// The path is neither a directory nor a device.
    NotADirectory {
        /// The path.
        path: PathBuf,
    },
    /// Another process, or another opening in this one, has the store.
    Locked {
        /// The directory or device.
        path: PathBuf,
        /// The holder, as far as it can be told.
        holder: String,
    },
    /// The file's contents are not a store, or a damaged, truncated, newer or other one.
    Unusable {
        /// The file or device.
        path: PathBuf,
        /// What is wrong, and where.
        error: RegionError,
    },
    /// The file or device cannot be mapped: no space, no access.
    Map(MapError),
    /// The journal does not open, or cannot be made.
    Journal {
        /// The file that the error is about.
        path: PathBuf,
        /// Why.
        error: JournalError,
    },
    /// The medium does not give the durability that was asked for.
    Durability {
        /// The directory or device.
        path: PathBuf,
        /// What was asked for.
        wanted: Durability,
        /// What the medium gives.
        given: Durability,
        /// Why no more, and what would give it.
        why: String,
    },
    /// The store's engine, or the engine that was asked for, is a feature that this build of the library lacks.
    EngineNotBuilt {
        /// The engine: the feature has its name.
        engine: EngineKind,
    },
    /// An option is outside its range.
    Option {
        /// Which, and what is wrong.
        what: String,
    },
    /// The operating system refused.
    Io {
        /// The file.
        path: PathBuf,
        /// What was tried, as a verb.
        doing: &'static str,
        /// Its answer.
        source: io::Error,
    },
}

impl OpenError {
    pub(crate) fn io(path: &Path, doing: &'static str) -> impl FnOnce(io::Error) -> OpenError {
        move |source| OpenError::Io { path: path.to_owned(), doing, source }
    }

    pub(crate) fn locked(path: &Path) -> impl Fn(LockError) -> OpenError {
        move |error| match error {
            LockError::Held { holder } => {
                let what = handles::of(path).filter(|_| holder.starts_with(OWN_PROCESS));
                let holder = what.map_or(holder.clone(), |what| format!("{holder} ({what})"));
                OpenError::Locked { path: path.to_owned(), holder }
            }
            LockError::Io { path, source, doing } => OpenError::Io { path, doing, source },
            other => OpenError::Io { path: path.to_owned(), doing: "lock", source: io::Error::other(other) },
        }
    }

    pub(crate) fn unusable(path: &Path) -> impl FnOnce(RegionError) -> OpenError {
        move |error| match error {
            RegionError::Heap(HeapError::WrongEngine { found, .. }) => match EngineKind::numbered(found) {
                Some(engine) if !engine.is_built() => OpenError::EngineNotBuilt { engine },
                _ => OpenError::Unusable { path: path.to_owned(), error },
            },
            error => OpenError::Unusable { path: path.to_owned(), error },
        }
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::Missing { path } => write!(f, "there is no store at {}", path.display()),
            OpenError::NotADirectory { path } => {
                write!(f, "{} is neither a directory nor a DAX device", path.display())
            }
            OpenError::Locked { path, holder } => write!(f, "the store at {} is in use by {holder}", path.display()),
            OpenError::Unusable { path, error: RegionError::Heap(HeapError::Medium(error)) } => {
                write!(f, "{}: {error}", path.display())
            }
            OpenError::Unusable { path, error: error @ RegionError::Heap(HeapError::Damaged { .. }) } => {
                write!(f, "{} cannot be opened: {error}; {SALVAGED}", path.display())
            }
            OpenError::Unusable { path, error } => write!(f, "{} cannot be opened: {error}", path.display()),
            OpenError::Map(error @ MapError::Addresses { .. }) => {
                write!(f, "{error}; {KEEP_FEWER}")
            }
            OpenError::Map(error) => error.fmt(f),
            OpenError::Journal { path, error: error @ JournalError::Addresses { .. } } => {
                write!(f, "{}: {error}; {KEEP_FEWER}", path.display())
            }
            OpenError::Journal { path, error: error @ (JournalError::Damaged { .. } | JournalError::Gap { .. }) } => {
                write!(f, "{}: {error}; {SALVAGED}", path.display())
            }
            OpenError::Journal { path, error } => write!(f, "{}: {error}", path.display()),
            OpenError::Durability { path, wanted, given, why } => {
                write!(f, "{} gives durability {given}, not {wanted}: {why}", path.display())
            }
            OpenError::EngineNotBuilt { engine } => {
                write!(f, "engine {engine} is not part of this build: enable feature '{engine}' of the crate hikv")
            }
            OpenError::Option { what } => f.write_str(what),
            OpenError::Io { path, doing, source } => write!(f, "cannot {doing} {}: {source}", path.display()),
        }
    }
}

impl std::error::Error for OpenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            OpenError::Unusable { error, .. } => Some(error),
            OpenError::Map(error) => Some(error),
            OpenError::Journal { error, .. } => Some(error),
            OpenError::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}

impl From<MapError> for OpenError {
    fn from(error: MapError) -> OpenError {
        OpenError::Map(error)
    }
}
