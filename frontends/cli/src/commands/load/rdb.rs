//! Loads a dump of Redis.

use hikv::Limits;
use rdb::{Entry, FileReader};
use server::{Import, Imported, TransferError};

use super::{Loading, Source, Stop};
use crate::failure::{Failure, print_error, warn, with_sources};
use crate::formats::Escaped;
use crate::plural::s;

/// Keys that are not stored although nothing is wrong with them.
#[derive(Default)]
struct LeftOut {
    expired: u64,
    empty: u64,
}

impl Loading<'_> {
    /// Stores every key; a key of the same name is replaced. Keys stored before an error remain.
    pub(super) fn all_of_rdb(&mut self, source: Source<'_>) -> Result<(), Stop> {
        if self.arguments.tree.is_named() {
            let what = "a dump of Redis has databases and no trees; load it without --tree";
            return Err(Failure::at(self.arguments.name().display(), what).into());
        }
        let import = Import::of(self.store).map_err(Failure::at_path(&self.arguments.dir))?;
        let mut reader = FileReader::new(source, Limits::VALUE_BYTES_MAX).map_err(|error| self.bad_rdb(&error))?;
        let mut left_out = LeftOut::default();
        loop {
            let entry = reader.next_entry();
            if let Some(signal) = self.interrupt.signal() {
                return Err(Stop::Signal(signal));
            }
            let Some(entry) = entry.map_err(|error| self.bad_rdb(&error))? else { break };
            let put = import.put(&mut reader, &entry);
            if let (Err(_), Some(signal)) = (&put, self.interrupt.signal()) {
                return Err(Stop::Signal(signal));
            }
            match put {
                Ok(Imported::Stored) => self.stored(reader.offset())?,
                Ok(Imported::Expired) => left_out.expired += 1,
                Ok(Imported::Empty) => left_out.empty += 1,
                Err(error) => self.not_put(&entry, reader.offset(), error)?,
            }
        }
        self.report(&left_out, reader.library_count());
        Ok(())
    }

    /// Skips a key that cannot be stored, or returns the failure.
    fn not_put(&mut self, entry: &Entry, offset: u64, error: TransferError) -> Result<(), Failure> {
        let what = match error {
            TransferError::Dump(error) => return Err(self.bad_rdb(&error)),
            TransferError::Store(error) if !is_about_key(&error) => {
                return Err(Failure::at(self.arguments.dir.display(), with_sources(&error)));
            }
            other => other.to_string(),
        };
        let key = Escaped(&entry.key);
        let message = format!(
            "{}: key '{key}' of database {}, before offset {offset}: {what}",
            self.arguments.name().display(),
            entry.db
        );
        if !self.arguments.skip_bad {
            let items = self.progress.items();
            return Err(Failure::Error(format!("{message}; --skip-bad skips such keys; keys stored before: {items}")));
        }
        print_error(&message);
        self.bad += 1;
        Ok(())
    }

    fn bad_rdb(&self, error: &rdb::Error) -> Failure {
        let items = self.progress.items();
        Failure::at(self.arguments.name().display(), format!("{error}; keys stored before: {items}"))
    }

    fn report(&self, left_out: &LeftOut, library_count: u64) {
        let name = self.arguments.name().display();
        let counts = [
            (left_out.expired, "key", "that had expired"),
            (left_out.empty, "collection", "without elements"),
            (library_count, "library", "of functions, which hikv does not have"),
        ];
        for (count, noun, what) in counts.into_iter().filter(|(count, ..)| *count > 0) {
            let plural = match noun {
                "library" if count > 1 => "libraries".to_owned(),
                noun => format!("{noun}{}", s(count)),
            };
            warn(&format!("{name}: left out {count} {plural} {what}"));
        }
    }
}

/// Returns whether another key may still be stored.
fn is_about_key(error: &hikv::Error) -> bool {
    use hikv::Error;
    matches!(
        error,
        Error::KeyTooLong { .. } | Error::ValueTooLong { .. } | Error::BatchTooLong { .. } | Error::Unsupported { .. }
    )
}
