//! Loads lines of text.

use hikv::{Error, Tree};

use super::{Loading, Source, Stop};
use crate::failure::{Failure, print_error, with_sources};
use crate::formats::{Format, Frame, Item, ReadError, Reader};

impl Loading<'_> {
    /// Stores one item per line.
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
                Ok(false) => {
                    self.is_unmarked = reader.frame() == Frame::Unmarked;
                    return Ok(());
                }
                Err(ReadError::Malformed { line, what }) => self.malformed(line, &what)?,
                Err(ReadError::CutOff { line, what }) => return Err(self.at_line(line, &what).into()),
                Err(ReadError::Input(error)) => return Err(Failure::at(self.arguments.name().display(), error).into()),
            }
        }
    }

    fn put(&mut self, item: &Item, reader: &Reader<Source<'_>>) -> Result<(), Failure> {
        let put = match &item.tree {
            None => self.tree.put(&item.key, &item.value),
            Some(name) => self.named(name).and_then(|tree| tree.put(&item.key, &item.value)),
        };
        match put {
            Ok(()) => self.stored(reader.done_bytes())?,
            Err(error @ (Error::KeyTooLong { .. } | Error::ValueTooLong { .. } | Error::TreeName { .. })) => {
                self.malformed(reader.item_line(), &error.to_string())?;
            }
            Err(error) => return Err(Failure::at(self.arguments.dir.display(), with_sources(&error))),
        }
        Ok(())
    }

    /// Returns the tree of a name, and creates it if there is none.
    fn named(&mut self, name: &str) -> Result<&Tree, Error> {
        if !self.named.contains_key(name) {
            self.named.insert(name.to_owned(), self.store.tree(name)?);
        }
        Ok(&self.named[name])
    }

    fn malformed(&mut self, line: u64, what: &str) -> Result<(), Failure> {
        if !self.arguments.skip_bad {
            return Err(self.at_line(line, what));
        }
        print_error(&self.message(line, what));
        self.bad += 1;
        Ok(())
    }

    fn at_line(&self, line: u64, what: &str) -> Failure {
        Failure::Error(self.message(line, what))
    }

    fn message(&self, line: u64, what: &str) -> String {
        format!("{}:{line}: {what}", self.arguments.name().display())
    }
}
