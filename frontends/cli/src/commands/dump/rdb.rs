//! Writes a dump of Redis.

use std::io;
use std::time::{SystemTime, UNIX_EPOCH};

use hikv::{Expiry, Store};
use rdb::{FileWriter, Kind};
use server::{Export, TransferError};

use super::Dump;
use crate::commands::listing::Listing;
use crate::failure::{Failure, warn, with_sources};

/// Trees of the server itself have names with this prefix.
const OWN_PREFIX: &str = "hikv:";

impl Dump {
    /// Writes the keys of all databases.
    pub(super) fn write_rdb(&self, store: &Store, listing: Listing) -> Result<(), Failure> {
        let trees = store.trees().map_err(|error| self.stopped_by(&error))?;
        let other_count = trees.iter().filter(|tree| !tree.name.starts_with(OWN_PREFIX)).count();
        if other_count > 0 {
            let advice = "--format hikv dumps all";
            warn(&format!("{}: {other_count} named trees are not in this dump; {advice}", self.dir.display()));
        }
        let export = Export::of(store).map_err(Failure::at_path(&self.dir))?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs()).to_string();
        let auxiliary = [("hikv-ver", env!("CARGO_PKG_VERSION")), ("redis-bits", "64"), ("ctime", &now)];
        let mut listing = listing.wrapped(|out| FileWriter::new(out, &auxiliary))?;
        let mut is_stopped = false;
        let strings = export.strings(|db, key, value, expiry| {
            let flow = listing.show(|out| {
                out.begin(db, key, Kind::String, ms_of(expiry))?;
                let mut length = Vec::new();
                rdb::put_length(&mut length, value.len() as u64);
                out.write(&length)?;
                out.write(value)
            });
            is_stopped = flow.is_break();
            flow
        });
        strings.map_err(|error| self.stopped(error))?;
        if !is_stopped {
            let collections = export.collections(|collection| {
                let mut outcome = Ok(());
                let flow = listing.show(|out| {
                    out.begin(collection.db, collection.key, collection.kind, ms_of(collection.expiry))?;
                    let mut count = Vec::new();
                    rdb::put_length(&mut count, collection.count);
                    out.write(&count)?;
                    match collection.elements(|encoded| out.write(encoded)) {
                        Err(TransferError::Output(error)) => return Err(error),
                        read => outcome = read,
                    }
                    Ok::<(), io::Error>(())
                });
                outcome.map(|()| flow)
            });
            collections.map_err(|error| self.stopped(error))?;
        }
        listing.finish_with(FileWriter::finish)
    }

    fn stopped(&self, error: TransferError) -> Failure {
        match error {
            TransferError::Store(error) => self.stopped_by(&error),
            other => Failure::at(self.dir.display(), with_sources(&other)),
        }
    }
}

fn ms_of(expiry: Expiry) -> Option<u64> {
    (!expiry.is_never()).then(|| expiry.ms())
}
