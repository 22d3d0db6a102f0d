//! Opening a store with options.

use std::path::Path;

use crate::{OpenError, OpenProgress, Options, Store};

impl Options {
    /// Opens the store at `path`, a directory or a DAX device.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(&self, path: impl AsRef<Path>) -> Result<Store, OpenError> {
        self.open_with_progress(path, &|_| {})
    }

    /// As [`Options::open`]; `progress` is told how far a journal has come whose log is read, and then an engine that puts keys in order
    /// before it serves. A journal's region is read into memory later: [`crate::JournalStats::loaded_bytes`].
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// use hikv::{OpenProgress, Options};
    ///
    /// let store = Options::new().open_watched(dir.path(), &|progress| match progress {
    ///     OpenProgress::Replaying { done, total } => println!("{done} of {total} parts of the log are read"),
    ///     OpenProgress::Indexing { done, total } => println!("{done} of {total} keys are in order"),
    ///     _ => {}
    /// })?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open_with_progress(
        &self,
        path: impl AsRef<Path>,
        progress: &(dyn Fn(OpenProgress) + Sync),
    ) -> Result<Store, OpenError> {
        self.check()?;
        let store = Store::with_options(path.as_ref(), self, progress)?;
        // Which engine an existing store has is known only now.
        self.check_engine(store.engine_kind())?;
        Ok(store)
    }
}
