//! `hikv serve`.

use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::thread;

use clap::Args;
use hikv::Store;
use indicatif::HumanCount;
use server::{Config, Server, StopHandle};

use crate::durable::Durable;
use crate::failure::Failure;
use crate::interrupt::Interrupt;

/// Serve the store to Redis clients
///
/// Makes the store if there is none. SIGINT and SIGTERM end it after the requests that have arrived.
#[derive(Args)]
pub(crate) struct Serve {
    /// The store: a directory, or a DAX device
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// Where to listen; port 0 takes a free one
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:6379")]
    addr: String,
    /// Threads that serve; by default one a core
    #[arg(long, value_name = "COUNT")]
    threads: Option<NonZeroUsize>,
    #[command(flatten)]
    durable: Durable,
}

impl Serve {
    pub(super) fn run(self) -> Result<(), Failure> {
        let interrupt = Interrupt::install().map_err(Failure::at_signals)?;
        let store = self.durable.options().open(&self.dir)?;
        let server = self.bind(store.clone())?;
        self.announce(&store, &server).map_err(Failure::output("standard output"))?;
        let stop = StopHandle::new();
        let stopper = stop.clone();
        thread::spawn(move || interrupt.wait().map(|()| stopper.stop()));
        server.run(stop).map_err(|error| Failure::at(&self.addr, error))?;
        let items = store.len().map_err(Failure::at_path(&self.dir))?;
        store.close().map_err(Failure::at_path(&self.dir))?;
        writeln!(io::stdout(), "stopped; {} holds {} items", self.dir.display(), HumanCount(items))
            .map_err(Failure::output("standard output"))
    }

    fn bind(&self, store: Store) -> Result<Server, Failure> {
        let default = Config::default();
        let config = Config {
            addr: self.addr.clone(),
            threads: self.threads.map_or(default.threads, NonZeroUsize::get),
            ..default
        };
        Server::bind(store, config).map_err(|error| match error.kind() {
            io::ErrorKind::AddrInUse => Failure::at(&self.addr, "another program listens there; give another --addr"),
            _ => Failure::at(&self.addr, error),
        })
    }

    fn announce(&self, store: &Store, server: &Server) -> io::Result<()> {
        let stats = store.stats();
        let mut out = io::stdout().lock();
        writeln!(out, "serving {}, {} items", self.dir.display(), HumanCount(stats.items))?;
        writeln!(out, "  address     {}, Redis protocol", server.local_addr())?;
        writeln!(out, "  order       {}", describe_order(stats.order))?;
        writeln!(out, "  medium      {}", stats.medium)?;
        writeln!(out, "  durability  {}: {}", stats.durability, stats.durability_why)?;
        out.flush()
    }
}

fn describe_order(state: &str) -> &str {
    match state {
        "building" => "building; ranges are answered once it is ready",
        other => other,
    }
}
