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

use std::fs;
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::Path;

use engine::{Damage, Expiry};

use crate::backup_error::BackupError;
use crate::copy_mark::{Mark, Purpose};
use crate::dump::DumpWriter;
use crate::files;
use crate::filling::write_items;
use crate::partial::Copy;
use crate::{EngineKind, OpenError, Options, ProgressReply, Store};

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
        let shown = self.read_view().and_then(|view| view.for_each(each));
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
    pub fn backup<A: ProgressReply>(
        &self,
        out: impl AsRef<Path>,
        progress: impl FnMut(BackupProgress) -> A,
    ) -> Result<BackupReport, BackupError> {
        self.copy_to(out.as_ref(), Purpose::Kept, progress)
    }

    pub(crate) fn copy_to<A: ProgressReply>(
        &self,
        out: &Path,
        purpose: Purpose,
        progress: impl FnMut(BackupProgress) -> A,
    ) -> Result<BackupReport, BackupError> {
        let copy = copy_of(self, out, purpose, self.engine_kind())?;
        copy.complete(|store| write_items(&self.read_view()?, self.len()?, store, progress, None))
    }

    /// Makes a store in the directory `dir`, which must not exist, of the items of a backup, or of any other store that
    /// nobody has open for writing. The backup is verified first, and what was written before it is put in its place.
    ///
    /// # Errors
    /// See [`BackupError`]; then there is no `dir`, unless there was one.
    pub fn restore<A: ProgressReply>(
        backup: impl AsRef<Path>,
        dir: impl AsRef<Path>,
        progress: impl FnMut(BackupProgress) -> A,
    ) -> Result<BackupReport, BackupError> {
        let source = Options::new().create(false).read_only(true).ordered(false).open(backup.as_ref())?;
        let engine = source.engine_kind();
        Store::copy_items(&source, dir.as_ref(), engine, progress, None)
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
    pub fn convert<A: ProgressReply>(
        from: impl AsRef<Path>,
        into: impl AsRef<Path>,
        engine: EngineKind,
        progress: impl FnMut(BackupProgress) -> A,
    ) -> Result<BackupReport, BackupError> {
        let source = Options::new().create(false).read_only(true).ordered(false).open(from.as_ref())?;
        Store::copy_items(&source, into.as_ref(), engine, progress, None)
    }

    /// As [`Store::convert`], of a store that may be damaged: what is not whole is left out, and told to `damaged`. `engine` may be the
    /// store's own.
    ///
    /// # Errors
    /// See [`BackupError`]; then there is no `into`, unless there was one. A store of the engine HiKV is one that [`crate::repair`] gets more of.
    pub fn convert_skipping_damage<A: ProgressReply>(
        from: impl AsRef<Path>,
        into: impl AsRef<Path>,
        engine: EngineKind,
        progress: impl FnMut(BackupProgress) -> A,
        mut damaged: impl FnMut(Damage),
    ) -> Result<BackupReport, BackupError> {
        let options = Options::new().create(false).read_only(true).ordered(false);
        let source = options.skip_damaged(true).open(from.as_ref())?;
        Store::copy_items(&source, into.as_ref(), engine, progress, Some(&mut damaged))
    }

    fn copy_items<A: ProgressReply>(
        source: &Store,
        dir: &Path,
        engine: EngineKind,
        mut progress: impl FnMut(BackupProgress) -> A,
        damaged: Option<&mut dyn FnMut(Damage)>,
    ) -> Result<BackupReport, BackupError> {
        let copy = copy_of(source, dir, Purpose::Kept, engine)?;
        copy.complete(|store| {
            let items_total = match damaged {
                // Some engines count by a walk over what may be damaged.
                Some(_) => source.len().unwrap_or(0),
                None => {
                    let items_total = source.len()?;
                    assert_intact(source, BackupProgress { items: 0, items_total }, &mut progress)?;
                    items_total
                }
            };
            let items = write_items(&source.read_view()?, items_total, store, &mut progress, damaged)?;
            assert_intact(store, BackupProgress { items, items_total }, &mut progress)?;
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

/// An error if the store is damaged. Items that are verified are not counted in what is shown.
fn assert_intact<A: ProgressReply>(
    store: &Store,
    shown: BackupProgress,
    progress: &mut impl FnMut(BackupProgress) -> A,
) -> Result<(), BackupError> {
    let mut is_stopped = false;
    let damage = store.verify(|_| {
        is_stopped = !progress(shown).goes_on();
        if is_stopped { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    match damage?.damage {
        _ if is_stopped => Err(BackupError::Stopped),
        damage if damage.is_empty() => Ok(()),
        damage => Err(BackupError::Damaged { path: store.path().to_owned(), damage }),
    }
}

fn refuse_existing(path: &Path) -> Result<(), BackupError> {
    match fs::symlink_metadata(path) {
        Ok(_) => Err(BackupError::Exists { path: path.to_owned() }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(OpenError::io(path, "examine")(error).into()),
    }
}
