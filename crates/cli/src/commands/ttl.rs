//! `hikv ttl`.

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use clap::Args;
use hikv::Ttl as Left;

use super::not_found;
use crate::failure::Failure;
use crate::opening;

/// Write to standard output how many seconds a key has left, or `unlimited`
#[derive(Args)]
pub(crate) struct Ttl {
    /// The store: a directory, or a DAX device
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// Any bytes, also none
    key: OsString,
}

impl Ttl {
    pub(super) fn run(self) -> Result<(), Failure> {
        let store = opening::read_only(&self.dir)?;
        let key = self.key.as_bytes();
        let shown = match store.ttl(key).map_err(Failure::at_path(&self.dir))? {
            None => return Err(Failure::Negative(not_found(&self.dir, key))),
            Some(Left::Unlimited) => "unlimited".to_owned(),
            Some(Left::Left(left)) => format!("{:.3}", left.as_secs_f64()),
        };
        writeln!(io::stdout(), "{shown}").map_err(Failure::output("the time"))
    }
}
