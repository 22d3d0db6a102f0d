//! Loads a dump in hikv's binary format.

use std::time::{Duration, UNIX_EPOCH};

use hikv::dump::{DumpItem, DumpReader, DumpValue};
use hikv::{Error, PutOptions, Tree};

use super::{Loading, Source, Stop};
use crate::failure::{Failure, with_sources};

impl Loading<'_> {
    /// Stores every item. Items stored before an error remain; the message of the error counts them.
    pub(super) fn all_of_dump(&mut self, source: Source<'_>) -> Result<(), Stop> {
        let mut reader = DumpReader::new(source).map_err(|error| self.bad_dump(error))?;
        if reader.has_trees() {
            self.tree = self.tree_of_stored_keys()?;
        }
        loop {
            let stored = match reader.next_item() {
                Ok(None) => return Ok(()),
                Ok(Some(item)) => self.put_dumped(item),
                Err(error) => Err(self.bad_dump(error)),
            };
            if let Some(signal) = self.interrupt.signal() {
                return Err(Stop::Signal(signal));
            }
            stored?;
            self.stored(reader.done_bytes())?;
        }
    }

    /// Returns the tree of all stored keys, for a dump of a store with named trees.
    fn tree_of_stored_keys(&self) -> Result<Tree, Failure> {
        let at = |error| Failure::at(self.arguments.dir.display(), with_sources(&error));
        if self.arguments.tree.is_named() {
            let what = "the dump has all trees of a store; load it without --tree";
            return Err(Failure::at(self.arguments.name().display(), what));
        }
        if hikv::FrontEnd::of(self.store).stored().len().map_err(at)? > 0 {
            let what = "the dump has all trees of a store; load it into a new one";
            return Err(Failure::at(self.arguments.name().display(), what));
        }
        hikv::FrontEnd::of(self.store).stored_to_fill().map_err(at)
    }

    fn put_dumped(&self, item: DumpItem<'_, Source<'_>>) -> Result<(), Failure> {
        let time = |ms| UNIX_EPOCH + Duration::from_millis(ms);
        let options = item.expires_at_ms.map_or(PutOptions::new(), |ms| PutOptions::new().expires(time(ms)));
        let stored = match item.value {
            DumpValue::Whole(value) => self.tree.put_with(item.key, value, options),
            DumpValue::Pieces(mut value) => self.tree.put_from_with(item.key, value.left_bytes(), &mut value, options),
        };
        stored.map_err(|error| match error {
            Error::Source(error) => self.bad_dump(error),
            error => Failure::at(self.arguments.dir.display(), with_sources(&error)),
        })
    }

    fn bad_dump(&self, error: impl std::error::Error) -> Failure {
        let items = self.progress.items();
        Failure::at(self.arguments.name().display(), format!("{}; items stored before: {items}", with_sources(&error)))
    }
}
