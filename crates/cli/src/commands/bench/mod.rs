//! `hikv bench`.

mod print;

use std::fs;
use std::io;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Duration;

use bench::{Candidate, Config, Event, KEY_BYTES_MIN, RECORDS_MAX, THREADS_MAX, VALUE_BYTES_MIN, Workload};
use clap::builder::RangedU64ValueParser;
use clap::{Args, value_parser};
use hikv::{Limits, Options, Store};
use tempfile::TempDir;

use crate::durable::Durable;
use crate::failure::{Failure, complain};
use crate::interrupt::Interrupt;
use crate::kept::Kept;
use crate::read_cache::ReadCache;
use crate::verified::Verified;

/// Measure the speed of a fresh store, with every value checked
///
/// The store is a new directory under DIR, removed in the end. A workload runs twice: untimed one by one for the
/// throughput, then with each operation timed for the percentiles. The exit code is 1 if any result was wrong.
#[derive(Args)]
pub(crate) struct Bench {
    /// Where the store is made: its file system is the medium
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
    /// Of get get_owned get_with miss multiget insert update delete, with order kept rebuild scan insert-ordered
    /// update-ordered delete-ordered, and ycsb-a to ycsb-f
    #[arg(long, value_delimiter = ',', default_value = "get,miss,multiget,insert,update,delete")]
    workloads: Vec<Workload>,
    /// Items loaded before the first workload
    #[arg(long, default_value_t = 1_000_000, value_parser = value_parser!(u64).range(1..=RECORDS_MAX))]
    records: u64,
    /// How long each of the two passes of a workload lasts at most
    #[arg(long, default_value = "5", value_parser = parse_seconds)]
    seconds: Duration,
    /// Calling threads
    #[arg(long, default_value_t = 1, value_parser = value_parser!(u64).range(1..=THREADS_MAX as u64))]
    threads: u64,
    /// Length of each key
    #[arg(long, default_value_t = 16, value_parser = key_range())]
    key_bytes: u64,
    /// How many bytes all keys begin with alike, of the key's length
    #[arg(long, default_value_t = 0)]
    shared_bytes: u64,
    /// Length of each value
    #[arg(long, default_value_t = 256, value_parser = value_range())]
    value_bytes: u64,
    /// Print an object a line
    #[arg(long)]
    json: bool,
    /// Count flushed lines and fences, which costs some speed
    #[arg(long)]
    count: bool,
    /// Nanoseconds added to each persist, to stand for slower memory (600 in the figures of the HiKV paper, 50 to 1400 where it varies)
    #[arg(long, default_value_t = 0)]
    persist_ns: u64,
    /// Nanoseconds added to each access to an item, to stand for slower memory
    #[arg(long, default_value_t = 0)]
    read_ns: u64,
    /// Nanoseconds added to each block that is written back and that the memory does not hold already
    #[arg(long, default_value_t = 0)]
    persist_block_ns: u64,
    /// Nanoseconds added to each block that is read and that the memory does not hold already
    #[arg(long, default_value_t = 0)]
    read_block_ns: u64,
    /// Length of those blocks, a power of two
    #[arg(long, default_value_t = 256)]
    block_bytes: u64,
    /// Leave the store behind, and say where
    #[arg(long)]
    keep: bool,
    #[command(flatten)]
    verified: Verified,
    #[command(flatten)]
    read_cache: ReadCache,
    #[command(flatten)]
    kept: Kept,
    #[command(flatten)]
    durable: Durable,
}

impl Bench {
    pub(super) fn run(self) -> Result<(), Failure> {
        self.check()?;
        let interrupt = Interrupt::install().map_err(Failure::at_signals)?;
        let mut errors = 0;
        for (number, workloads) in self.workloads.chunk_by(|one, next| next.can_follow(*one)).enumerate() {
            if interrupt.signal().is_none() {
                errors += self.on_fresh_store(workloads, number == 0, &interrupt)?;
            }
        }
        match (interrupt.signal(), errors) {
            (Some(signal), _) => Err(Failure::Interrupted { signal, done: "the store is removed".to_owned() }),
            (None, 0) => Ok(()),
            (None, errors) => Err(Failure::Negative(format!("{errors} results were wrong"))),
        }
    }

    fn check(&self) -> Result<(), Failure> {
        let varied_bytes = self.key_bytes.saturating_sub(self.shared_bytes);
        if varied_bytes < KEY_BYTES_MIN as u64 {
            let Bench { key_bytes, shared_bytes, .. } = self;
            return Err(Failure::Error(format!(
                "keys of {key_bytes} bytes that share {shared_bytes}: {KEY_BYTES_MIN} must be left to tell them apart"
            )));
        }
        Ok(())
    }

    /// Measures workloads that can share a store; how many results were wrong. The first store's place is probed.
    fn on_fresh_store(&self, workloads: &[Workload], is_first: bool, interrupt: &Interrupt) -> Result<u64, Failure> {
        let home = self.home().map_err(Failure::at_path(&self.dir))?;
        if is_first {
            let machine = pmem_os::probe(home.path()).map_err(Failure::at_path(&self.dir))?;
            print::machine(&machine, self.json).map_err(Failure::output("standard output"))?;
        }
        let is_ordered = workloads.iter().any(|workload| workload.is_ordered());
        let store = self.options().ordered(is_ordered).open(home.path())?;
        let errors = self.measure(&store, workloads, interrupt)?;
        store.close().map_err(Failure::at_path(home.path()))?;
        self.leave(home)?;
        Ok(errors)
    }

    /// A directory of its own, so that no store that is already there is touched.
    fn home(&self) -> io::Result<TempDir> {
        fs::create_dir_all(&self.dir)?;
        tempfile::Builder::new().prefix("hikv-bench-").tempdir_in(&self.dir)
    }

    fn options(&self) -> Options {
        self.kept
            .options(self.read_cache.options(self.durable.options()))
            .verify_reads(self.verified.level())
            .count_persists(self.count)
            .persist_delay(Duration::from_nanos(self.persist_ns))
            .read_delay(Duration::from_nanos(self.read_ns))
            .block_delays(
                self.block_bytes,
                Duration::from_nanos(self.read_block_ns),
                Duration::from_nanos(self.persist_block_ns),
            )
    }

    fn config(&self, workloads: &[Workload]) -> Config {
        Config {
            workloads: workloads.to_vec(),
            records: self.records,
            pass: self.seconds,
            threads: self.threads as usize,
            key_bytes: self.key_bytes as usize,
            shared_bytes: self.shared_bytes as usize,
            value_bytes: self.value_bytes as usize,
        }
    }

    fn leave(&self, home: TempDir) -> Result<(), Failure> {
        if self.keep {
            complain(&format!("the store stays in {}", home.keep().display()));
            return Ok(());
        }
        home.close().map_err(Failure::at_path(&self.dir))
    }

    /// Runs all workloads; how many results were wrong.
    fn measure(&self, store: &Store, workloads: &[Workload], interrupt: &Interrupt) -> Result<u64, Failure> {
        let mut errors = 0;
        let mut printed = Ok(());
        bench::run(
            &Candidate::new(store.clone()),
            &self.config(workloads),
            &|| interrupt.signal().is_some(),
            |event| {
                if let Event::Measured(row) = &event {
                    errors += row.errors;
                }
                printed = print::event(&event, self.json);
                if printed.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            },
        )
        .map_err(Failure::at_path(&self.dir))?;
        printed.map(|()| errors).map_err(Failure::output("standard output"))
    }
}

fn parse_seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
}

fn key_range() -> RangedU64ValueParser {
    RangedU64ValueParser::new().range(KEY_BYTES_MIN as u64..=Limits::KEY_BYTES_MAX as u64)
}

fn value_range() -> RangedU64ValueParser {
    RangedU64ValueParser::new().range(VALUE_BYTES_MIN as u64..=Limits::VALUE_BYTES_MAX)
}
