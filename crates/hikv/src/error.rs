//! Errors of opening a store.

use std::path::{Path, PathBuf};
use std::{fmt, io};

use engine::OpenError as RegionError;
use heap::HeapError;
use journal::JournalError;
use pmem::Durability;
use pmem_os::{LockError, MapError};

use crate::{EngineKind, handles};

/// The name of this process as the holder of a lock.
const OWN_PROCESS: &str = "this process itself";

/// Advice for a process without free addresses.
const KEEP_FEWER: &str = "each store reserves 32 GiB of addresses, or Options::region_bytes_max if set: close some \
                          stores, or set a smaller value for each";
/// Advice for a damaged store.
const SALVAGED: &str = "hikv::repair or hikv::convert_skipping_damage copies the intact items into a new store";

/// An error of opening a store. The store's contents are unchanged. Exceptions: if opening fails late, steps of any
/// opening may be done (an interrupted change finished, the end of a log rewritten). If a store was to be created,
/// directories may be left, and files that the next creation removes.
#[derive(Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// There is no store, and the options do not create one.
    Missing {
        /// The directory or device.
        path: PathBuf,
    },
    /// The path is neither a directory nor a device.
    NotADirectory {
        /// The path.
        path: PathBuf,
    },
    /// Another process has the store open, or another handle in this process.
    Locked {
        /// The directory or device.
        path: PathBuf,
        /// The holder, as far as it is known.
        holder: String,
    },
    /// The file holds no store, or a damaged, truncated or newer one, or one of another engine.
    Unusable {
        /// The file or device.
        path: PathBuf,
        /// The problem and its place.
        error: RegionError,
    },
    /// The file or device cannot be mapped, for example for lack of space or permission.
    Map(MapError),
    /// The journal cannot be opened or created.
    Journal {
        /// The file in question.
        path: PathBuf,
        /// The reason.
        error: JournalError,
    },
    /// The storage does not provide the requested durability.
    Durability {
        /// The directory or device.
        path: PathBuf,
        /// The requested durability.
        wanted: Durability,
        /// The durability that the storage provides.
        given: Durability,
        /// The reason, and a remedy.
        why: String,
    },
    /// The store's engine, or the requested engine, is a feature that this build of the library lacks.
    EngineNotBuilt {
        /// The engine, which is also the feature's name.
        engine: EngineKind,
    },
    /// An option is outside its range.
    Option {
        /// The option and the problem.
        what: String,
    },
    /// The operating system refused.
    Io {
        /// The file.
        path: PathBuf,
        /// The failed action, as a verb.
        doing: &'static str,
        /// The system's error.
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
                write!(f, "cannot open {}: {error}; {SALVAGED}", path.display())
            }
            OpenError::Unusable { path, error } => write!(f, "cannot open {}: {error}", path.display()),
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
    /// Returns the first source whose text `Display` does not include: it includes the inner error's own text, which
    /// for a mapping or a journal ends with the system's error.
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            OpenError::Unusable { error, .. } => error.source(),
            OpenError::Map(error) => error.source().and_then(std::error::Error::source),
            OpenError::Journal { error, .. } => error.source().and_then(std::error::Error::source),
            OpenError::Io { source, .. } => source.source(),
            _ => None,
        }
    }
}

impl From<MapError> for OpenError {
    fn from(error: MapError) -> OpenError {
        OpenError::Map(error)
    }
}
