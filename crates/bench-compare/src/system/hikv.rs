//! hikv: on a disk it has a journal, in tmpfs none.

use std::path::Path;

use ::hikv::{Durability, Options, Store};

use super::Opened;
use crate::cell::Level;
use crate::error::Error;

struct HiKv(Store);

/// Opens the store in `directory`, at its medium's own level where none is given. Nobody asks for order here.
pub(super) fn open(directory: &Path, level: Option<Level>) -> Result<Box<dyn Opened>, Error> {
    let options = Options::new().ordered(false);
    let options = match level {
        Some(Level::Power) => options.durability(Durability::Power),
        Some(Level::Buffered) => options.durability(Durability::Buffered),
        None => options,
    };
    Ok(Box::new(HiKv(options.open(directory.join("store"))?)))
}

impl Opened for HiKv {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        Ok(self.0.put(key, value)?)
    }

    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool, Error> {
        Ok(self.0.get_into(key, value)?)
    }

    fn close(self: Box<Self>) -> Result<(), Error> {
        Ok(self.0.close()?)
    }
}
