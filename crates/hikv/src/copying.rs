//! Copies of stores that are larger than memory.

use std::path::Path;

use engine::Damage;

use crate::backup::copy_items;
use crate::{BackupError, BackupProgress, BackupReport, CallbackReply, EngineKind, OpenError, Options, Store};

impl Options {
    /// Like [`crate::restore`], with a limit of memory for each of both stores that has a journal. Of the options, only
    /// [`Options::memory_bytes_max`] has an effect.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let [path, backup, restored] = ["store", "backup", "restored"].map(|name| dir.path().join(name));
    /// use hikv::{Options, Store};
    ///
    /// let store = Store::open(&path)?;
    /// store.put("key", "value")?;
    /// store.backup(&backup, |_| {})?;
    /// let report = Options::new().memory_bytes_max(64 << 20).restore(&backup, &restored, |_| {})?;
    /// assert_eq!(report.items, 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As for [`crate::restore`].
    pub fn restore<A: CallbackReply>(
        &self,
        backup: impl AsRef<Path>,
        dir: impl AsRef<Path>,
        progress: impl FnMut(BackupProgress) -> A,
    ) -> Result<BackupReport, BackupError> {
        let source = self.source(backup.as_ref(), false)?;
        copy_items(&source, dir.as_ref(), (source.engine_kind(), self.memory_bytes_max), progress, None)
    }

    /// Like [`crate::convert`], with a limit of memory for each of both stores that has a journal. Of the options, only
    /// [`Options::engine`], which is the new store's, and [`Options::memory_bytes_max`] have an effect.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let (from, into) = (dir.path().join("old"), dir.path().join("new"));
    /// use hikv::{EngineKind, Options, Store};
    ///
    /// Store::open(&from)?.put("answer", "42")?;
    /// let options = Options::new().engine(EngineKind::HiKv).memory_bytes_max(64 << 20);
    /// assert_eq!(options.convert(&from, &into, |_| {})?.items, 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As for [`crate::convert`].
    pub fn convert<A: CallbackReply>(
        &self,
        from: impl AsRef<Path>,
        into: impl AsRef<Path>,
        progress: impl FnMut(BackupProgress) -> A,
    ) -> Result<BackupReport, BackupError> {
        let source = self.source(from.as_ref(), false)?;
        copy_items(&source, into.as_ref(), (self.new_engine(), self.memory_bytes_max), progress, None)
    }

    /// Like [`Options::convert`], for a store that may be damaged: skips damaged items and reports each to `damaged`.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let (from, into) = (dir.path().join("old"), dir.path().join("new"));
    /// use hikv::{Options, Store};
    ///
    /// Store::open(&from)?.put("key", "value")?;
    /// let options = Options::new().memory_bytes_max(64 << 20);
    /// let report = options.convert_skipping_damage(&from, &into, |_| {}, |damage| println!("{damage:?}"))?;
    /// assert_eq!(report.items, 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As for [`crate::convert_skipping_damage`].
    pub fn convert_skipping_damage<A: CallbackReply>(
        &self,
        from: impl AsRef<Path>,
        into: impl AsRef<Path>,
        progress: impl FnMut(BackupProgress) -> A,
        mut damaged: impl FnMut(Damage),
    ) -> Result<BackupReport, BackupError> {
        let source = self.source(from.as_ref(), true)?;
        copy_items(&source, into.as_ref(), (self.new_engine(), self.memory_bytes_max), progress, Some(&mut damaged))
    }

    fn new_engine(&self) -> EngineKind {
        self.engine.unwrap_or_default()
    }

    /// Opens a store to copy it.
    fn source(&self, path: &Path, skips_damaged: bool) -> Result<Store, OpenError> {
        let options = Options::new().create(false).read_only(true).ordered(false);
        let options = options.memory_if_journaled(self.memory_bytes_max);
        options.tuning(|tuning| tuning.skip_damaged(skips_damaged)).open(path)
    }
}
