//! Loading a dump of hikv's own format.

use std::fmt::Display;

use hikv::Error;
use hikv::dump::{DumpItem, DumpReader, DumpValue};

use super::{Loading, Source, Stop};
use crate::failure::Failure;
use crate::formats::Escaped;

impl Loading<'_> {
    /// Stores every item; what was stored before an error stays, and is counted in its message.
    pub(super) fn all_of_dump(&mut self, source: Source<'_>) -> Result<(), Stop> {
        let mut reader = DumpReader::new(source).map_err(|error| self.bad_dump(error))?;
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
            self.stored(reader.done_bytes());
        }
    }

    fn put_dumped(&self, item: DumpItem<'_, Source<'_>>) -> Result<(), Failure> {
        if let Some(expires_at_ms) = item.expires_at_ms {
            let key = Escaped(item.key);
            return Err(self.bad_dump(format!("the key '{key}' expires at {expires_at_ms} ms: stores keep no expiry")));
        }
        let stored = match item.value {
            DumpValue::Whole(value) => self.store.put(item.key, value),
            DumpValue::Pieces(mut value) => self.store.put_from(item.key, value.left_bytes(), &mut value),
        };
        stored.map_err(|error| match error {
            Error::Source(error) => self.bad_dump(error),
            error => Failure::at(self.arguments.dir.display(), error),
        })
    }

    fn bad_dump(&self, error: impl Display) -> Failure {
        let items = self.progress.items();
        Failure::at(self.arguments.name().display(), format!("{error}; {items} items were stored before"))
    }
}
