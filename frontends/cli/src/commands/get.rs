//! `hikv get`.

use std::ffi::OsString;
use std::io::{self, IsTerminal, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use clap::Args;

use super::missing::not_found;
use crate::failure::Failure;
use crate::in_tree::InTree;
use crate::memory::Memory;
use crate::opening;
use crate::serving::{self, Client, Reply};
use crate::verified::Level;

/// Print the value of a key, byte for byte
///
/// On a terminal a line feed follows. If `hikv serve` has the store open, the value is read through the server.
#[derive(Args)]
pub(crate) struct Get {
    /// The store: a directory or a DAX device
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// The key: any bytes, may be empty
    key: OsString,
    #[command(flatten)]
    tree: InTree,
    /// Data to compare with its checksum
    #[arg(long, value_enum, value_name = "LEVEL", default_value_t = Level::Absence)]
    verify: Level,
    #[command(flatten)]
    memory: Memory,
}

impl Get {
    pub(super) fn run(self) -> Result<(), Failure> {
        let key = self.key.as_bytes();
        let store = match opening::verified(&self.dir, self.verify.into(), &self.memory) {
            Ok(store) => store,
            Err(error) => {
                let server = serving::instead(error)?;
                self.tree.refuse_server(&self.dir)?;
                return self.ask_server(server, key);
            }
        };
        match self.tree.existing(&store, &self.dir)?.reader(key).map_err(Failure::at_path(&self.dir))? {
            Some(value) => write_out(value).map_err(Failure::output("the value")),
            None => Err(Failure::Negative(not_found(&self.dir, key))),
        }
    }

    /// Sends the request to the server that has the store open.
    fn ask_server(&self, mut server: Client, key: &[u8]) -> Result<(), Failure> {
        match server.ask(&[b"GET", key]).map_err(|error| Failure::at(server.addr(), error))? {
            Reply::Bulk(Some(value)) => write_out(value.as_slice()).map_err(Failure::output("the value")),
            Reply::Bulk(None) => Err(Failure::Negative(not_found(&self.dir, key))),
            other => Err(serving::refused(&self.dir, &other)),
        }
    }
}

fn write_out(mut value: impl Read) -> io::Result<()> {
    let mut out = io::stdout().lock();
    io::copy(&mut value, &mut out)?;
    if out.is_terminal() {
        out.write_all(b"\n")?;
    }
    out.flush()
}
