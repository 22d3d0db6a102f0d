//! `hikv ttl`.

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use hikv::Ttl as Left;

use super::missing::not_found;
use crate::failure::Failure;
use crate::in_tree::InTree;
use crate::memory::Memory;
use crate::opening;
use crate::serving::{self, Client, Reply};

/// Print the seconds that a key has left, or `unlimited`
#[derive(Args)]
pub(crate) struct Ttl {
    /// The store: a directory or a DAX device
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// The key: any bytes, may be empty
    key: OsString,
    #[command(flatten)]
    tree: InTree,
    #[command(flatten)]
    memory: Memory,
}

impl Ttl {
    pub(super) fn run(self) -> Result<(), Failure> {
        let key = self.key.as_bytes();
        let left = match opening::read_only(&self.dir, &self.memory) {
            Ok(store) => self.tree.existing(&store, &self.dir)?.ttl(key).map_err(Failure::at_path(&self.dir))?,
            Err(error) => {
                let server = serving::instead(error)?;
                self.tree.refuse_server(&self.dir)?;
                self.ask_server(server, key)?
            }
        };
        let shown = match left {
            None => return Err(Failure::Negative(not_found(&self.dir, key))),
            Some(Left::Unlimited) => "unlimited".to_owned(),
            Some(Left::Left(left)) => format!("{:.3}", left.as_secs_f64()),
        };
        writeln!(io::stdout(), "{shown}").map_err(Failure::output("the time"))
    }

    /// Sends the request to the server that has the store open.
    fn ask_server(&self, mut server: Client, key: &[u8]) -> Result<Option<Left>, Failure> {
        match server.ask(&[b"PTTL", key]).map_err(|error| Failure::at(server.addr(), error))? {
            Reply::Integer(-2) => Ok(None),
            Reply::Integer(ms @ 0..) => Ok(Some(Left::Left(Duration::from_millis(ms as u64)))),
            Reply::Integer(_) => Ok(Some(Left::Unlimited)),
            other => Err(serving::refused(&self.dir, &other)),
        }
    }
}
