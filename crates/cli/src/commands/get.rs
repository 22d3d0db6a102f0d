//! `hikv get`.

use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use clap::Args;
use hikv::ValueReader;

use super::not_found;
use crate::failure::Failure;
use crate::opening;

/// Write the value of a key to standard output, byte for byte
///
/// On a terminal a line feed follows it.
#[derive(Args)]
pub(crate) struct Get {
    /// The store: a directory, or a DAX device
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// Any bytes, also none
    key: OsString,
}

impl Get {
    pub(super) fn run(self) -> Result<(), Failure> {
        let store = opening::read_only(&self.dir)?;
        let key = self.key.as_bytes();
        match store.reader(key).map_err(Failure::at_path(&self.dir))? {
            Some(value) => write_out(value).map_err(Failure::output("the value")),
            None => Err(Failure::Negative(not_found(&self.dir, key))),
        }
    }
}

fn write_out(mut value: ValueReader) -> io::Result<()> {
    let mut out = io::stdout().lock();
    io::copy(&mut value, &mut out)?;
    if out.is_terminal() {
        out.write_all(b"\n")?;
    }
    out.flush()
}
