//! Loading lines of text.

use super::{Loading, Source, Stop};
use crate::failure::{Failure, complain};
use crate::formats::{Format, Item, ReadError, Reader};

impl Loading<'_> {
    /// Stores an item a line.
    pub(super) fn all_lines(&mut self, source: Source<'_>, format: Format) -> Result<(), Stop> {
        let mut reader = Reader::new(source, format);
        let mut item = Item::default();
        loop {
            let read = reader.read(&mut item);
            if let Some(signal) = self.interrupt.signal() {
                return Err(Stop::Signal(signal));
            }
            match read {
                Ok(true) => self.put(&item, &reader)?,
                Ok(false) => return Ok(()),
                Err(ReadError::Malformed { line, what }) => self.malformed(line, &what)?,
                Err(ReadError::Input(error)) => return Err(Failure::at(self.arguments.name().display(), error).into()),
            }
        }
    }

    fn put(&mut self, item: &Item, reader: &Reader<Source<'_>>) -> Result<(), Failure> {
        match self.store.put(&item.key, &item.value) {
            Ok(()) => self.stored(reader.done_bytes()),
            Err(error @ (hikv::Error::KeyTooLong { .. } | hikv::Error::ValueTooLong { .. })) => {
                self.malformed(reader.item_line(), &error.to_string())?;
            }
            Err(error) => return Err(Failure::at(self.arguments.dir.display(), error)),
        }
        Ok(())
    }

    fn malformed(&mut self, line: u64, what: &str) -> Result<(), Failure> {
        let message = format!("{}:{line}: {what}", self.arguments.name().display());
        if !self.arguments.skip_bad {
            return Err(Failure::Error(message));
        }
        complain(&message);
        self.bad += 1;
        Ok(())
    }
}
