//! Backup and restore: a store's items, as they were at one moment, in a new store.
//!
//! | step | an interruption after it leaves |
//! |---|---|
//! | 1 the directory `OUT.partial`, locked; what an earlier one left in it removed; marked as a copy ([`crate::copy_mark`]) | no store |
//! | 2 a region in it, under the name of an unfinished one; the snapshot's items put into it | no store |
//! | 3 the region closed and synced | no store |
//! | 4 the region renamed; the directory synced | a whole store, in `OUT.partial` |
//! | 5 `OUT.partial` renamed to `OUT`; the parent synced | the backup |
//!
//! So what is not whole opens as no store, and what is called OUT is whole. In step 1 a whole store is removed only if it has
//! the mark: one that only happens to be called `OUT.partial`, or was written to, stays.

use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::{fmt, fs};

use engine::{Damage, Error, Expiry};

use crate::copy_mark::{Mark, Purpose};
use crate::dump::DumpWriter;
use crate::files;
use crate::filling::write_items;
use crate::partial::Copy;
use crate::{EngineKind, OpenError, Options, Store};

/// How far a backup has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BackupProgress {
    /// Items written.
    pub items: u64,
    /// Items in the store when it began.
    pub items_total: u64,
}

/// What a backup wrote.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BackupReport {
    /// Items.
    pub items: u64,
    /// The length of the new store's region in bytes.
    pub region_bytes: u64,
}

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
}

impl fmt::Display for BackupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BackupError::Exists { path } => write!(f, "{} is there already: nothing is overwritten", path.display()),
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

impl Store {
    /// Writes all items, as they are at this moment, to a stream in hikv's dump format ([`crate::dump`]), while this store is
    /// read and written on; returns how many. A stream that was cut short has no end, and every reader says so.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let store = hikv::Store::open(dir.path())?;
    /// store.put("key", "value")?;
    /// let mut stream = Vec::new();
    /// assert_eq!(store.backup_to(&mut stream)?, 1);
    ///
    /// let mut reader = hikv::dump::DumpReader::new(&stream[..])?;
    /// assert_eq!(reader.next_item()?.expect("one item").key, b"key");
    /// assert!(reader.next_item()?.is_none());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`BackupError::Read`], [`BackupError::Stream`].
    pub fn backup_to(&self, out: impl Write) -> Result<u64, BackupError> {
        let mut dump = DumpWriter::new(out, self.uuid()).map_err(BackupError::Stream)?;
        let (mut items, mut written) = (0, Ok(()));
        let each = |key: &[u8], value: &[u8], expiry: Expiry| {
            written = dump.put(key, value, (!expiry.is_never()).then(|| expiry.ms()));
            items += 1;
            if written.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        };
        let shown = self.frozen().and_then(|frozen| frozen.for_each(each));
        shown.map_err(BackupError::Read)?;
        // Only now: a dump of a part has no end.
        written.and_then(|()| dump.finish().map(drop)).map_err(BackupError::Stream)?;
        Ok(items)
    }

    /// Writes all items, as they are at this moment, into a new store in the directory `out`, while this one is read and
    /// written on. Every checksum is verified. While it is written it is called `out.partial`, which opens as no store; one
    /// that an interruption leaves is removed by the next backup to `out`.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let (path, out) = (dir.path().join("store"), dir.path().join("monday"));
    /// use hikv::Store;
    ///
    /// let store = Store::open(&path)?;
    /// store.put("answer", "42")?;
    /// let report = store.backup(&out, |_| {})?;
    /// store.put("answer", "43")?;
    /// assert_eq!(report.items, 1);
    /// assert_eq!(Store::open_read_only(&out)?.get("answer")?.as_deref(), Some(&b"42"[..]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// See [`BackupError`]; then there is no `out`, unless there was one.
    pub fn backup(
        &self,
        out: impl AsRef<Path>,
        progress: impl FnMut(BackupProgress),
    ) -> Result<BackupReport, BackupError> {
        self.copy_to(out.as_ref(), Purpose::Kept, progress)
    }

    pub(crate) fn copy_to(
        &self,
        out: &Path,
        purpose: Purpose,
        progress: impl FnMut(BackupProgress),
    ) -> Result<BackupReport, BackupError> {
        let copy = copy_of(self, out, purpose, self.engine_kind())?;
        copy.complete(|store| write_items(&self.frozen()?, self.len()?, store, progress, None))
    }

    /// Makes a store in the directory `dir`, which must not exist, of the items of a backup, or of any other store that
    /// nobody has open for writing. The backup is verified first, and what was written before it is put in its place.
    ///
    /// # Errors
    /// See [`BackupError`]; then there is no `dir`, unless there was one.
    pub fn restore(
        backup: impl AsRef<Path>,
        dir: impl AsRef<Path>,
        progress: impl FnMut(BackupProgress),
    ) -> Result<BackupReport, BackupError> {
        let source = Options::new().create(false).read_only(true).ordered(false).open(backup.as_ref())?;
        let engine = source.engine_kind();
        Store::copy_whole(&source, dir.as_ref(), engine, progress, None)
    }

    /// Makes a store of the engine `engine` in the directory `into`, which must not exist, of the items of the store at
    /// `from`, which nobody may have open for writing. That one is verified first, and what was written before it is put in
    /// its place; it stays as it is.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let (from, into) = (dir.path().join("old"), dir.path().join("new"));
    /// use hikv::{EngineKind, Store};
    ///
    /// Store::open(&from)?.put("answer", "42")?;
    /// let report = Store::convert(&from, &into, EngineKind::HiKv, |_| {})?;
    /// assert_eq!((report.items, Store::open(&into)?.engine_kind()), (1, EngineKind::HiKv));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// See [`BackupError`]; then there is no `into`, unless there was one. An item that the engine cannot hold is one.
    pub fn convert(
        from: impl AsRef<Path>,
        into: impl AsRef<Path>,
        engine: EngineKind,
        progress: impl FnMut(BackupProgress),
    ) -> Result<BackupReport, BackupError> {
        let source = Options::new().create(false).read_only(true).ordered(false).open(from.as_ref())?;
        Store::copy_whole(&source, into.as_ref(), engine, progress, None)
    }

    /// As [`Store::convert`], of a store that may be damaged: what is not whole is left out, and told to `damaged`. `engine` may be the
    /// store's own.
    ///
    /// # Errors
    /// See [`BackupError`]; then there is no `into`, unless there was one. A store of the engine HiKV is one that [`crate::repair`] gets more of.
    pub fn convert_whole(
        from: impl AsRef<Path>,
        into: impl AsRef<Path>,
        engine: EngineKind,
        progress: impl FnMut(BackupProgress),
        mut damaged: impl FnMut(Damage),
    ) -> Result<BackupReport, BackupError> {
        let options = Options::new().create(false).read_only(true).ordered(false);
        let source = options.past_damage(true).open(from.as_ref())?;
        Store::copy_whole(&source, into.as_ref(), engine, progress, Some(&mut damaged))
    }

    fn copy_whole(
        source: &Store,
        dir: &Path,
        engine: EngineKind,
        progress: impl FnMut(BackupProgress),
        damaged: Option<&mut dyn FnMut(Damage)>,
    ) -> Result<BackupReport, BackupError> {
        let copy = copy_of(source, dir, Purpose::Kept, engine)?;
        copy.complete(|store| {
            let items_total = match damaged {
                // Some engines count by a walk over what may be damaged.
                Some(_) => source.len().unwrap_or(0),
                None => {
                    assert_whole(source)?;
                    source.len()?
                }
            };
            let items = write_items(&source.frozen()?, items_total, store, progress, damaged)?;
            assert_whole(store)?;
            Ok(items)
        })
    }
}

/// A new store of what `source` holds, where nothing is yet.
fn copy_of(source: &Store, out: &Path, purpose: Purpose, engine: EngineKind) -> Result<Copy, BackupError> {
    files::refuse_empty(out)?;
    refuse_existing(out)?;
    let options = Options::new().engine(engine).clock(source.engine()?.clock().clone());
    Copy::begin(out, Mark { purpose, uuid: source.uuid() }, &options)
}

/// An error if the store is damaged.
fn assert_whole(store: &Store) -> Result<(), BackupError> {
    let damage = store.verify(|_| {})?.damage;
    if damage.is_empty() { Ok(()) } else { Err(BackupError::Damaged { path: store.path().to_owned(), damage }) }
}

fn refuse_existing(path: &Path) -> Result<(), BackupError> {
    match fs::symlink_metadata(path) {
        Ok(_) => Err(BackupError::Exists { path: path.to_owned() }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(OpenError::io(path, "examine")(error).into()),
    }
}
