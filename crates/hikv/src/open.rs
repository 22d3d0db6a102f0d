//! Opening a store with options.

use std::path::Path;

use crate::{OpenError, OpenProgress, Options, Store};

impl Options {
    /// Opens the store at `path`, a directory or a DAX device.
    ///
    /// # Errors
    /// As for [`Store::open`]. [`OpenError::Option`] if an option is out of range or unknown to the engine;
    /// [`OpenError::Durability`] if the storage provides less than requested.
    pub fn open(&self, path: impl AsRef<Path>) -> Result<Store, OpenError> {
        self.open_with_progress(path, &|_| {})
    }

    /// Like [`Options::open`], and calls `progress` while opening reads a journal's log, or an engine sorts keys before
    /// it serves. A journal's region is read into memory afterwards: [`crate::JournalStats::loaded_bytes`].
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// use hikv::{OpenProgress, Options};
    ///
    /// let store = Options::new().open_with_progress(dir.path(), &|progress| match progress {
    ///     OpenProgress::Replaying { done, total } => println!("{done} of {total} parts of the log are read"),
    ///     OpenProgress::Indexing { done, total } => println!("{done} of {total} keys are in order"),
    ///     _ => {}
    /// })?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As for [`Options::open`].
    pub fn open_with_progress(
        &self,
        path: impl AsRef<Path>,
        progress: &(dyn Fn(OpenProgress) + Sync),
    ) -> Result<Store, OpenError> {
        self.check()?;
        let store = Store::with_options(path.as_ref(), self, progress)?;
        // Only the open store says which engine it has.
        self.check_engine(store.engine_kind())?;
        Ok(store)
    }
}
