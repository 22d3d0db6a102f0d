//! `hikv bench`.

mod latencies;
mod of_workloads;
mod print;
mod variant;

use std::fs;
use std::io;
use std::num::NonZero;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use bench::variants::Wal;
use bench::{Config, KEY_BYTES_MIN, RECORDS_MAX, Records, THREADS_MAX, VALUE_BYTES_MIN, Workload};
use clap::builder::RangedU64ValueParser;
use clap::{Args, value_parser};
use hikv::pool::{Plan, Sharing};
use hikv::{Limits, Options, Store};
use tempfile::TempDir;

use crate::durable::Durable;
use crate::failure::{Failure, print_error};
use crate::interrupt::Interrupt;
use crate::kept::Kept;
use crate::memory::Memory;
use crate::read_cache::ReadCache;
use crate::verified::Verified;
use latencies::Latencies;
use of_workloads::OfWorkloads;
use variant::{Setting, Variant};

/// Trees of the variant `par`: the number of threads in the paper.
const RANGE_COUNT: usize = 16;

/// Measure the speed of a fresh store, with every value checked
///
/// The store is a new directory under DIR, removed at the end. A workload runs twice: first without timing single
/// operations, for the throughput; then with each operation timed, for the percentiles.
///
/// Next to each figure are the thread time per operation of the same loop without a store (`own ns`), the minimum time
/// of such an operation on this machine with the same flushes and fences (`bound ns`, only for stores in memory), and
/// the ratio of the operation's time to that minimum.
///
/// SIGINT, SIGTERM and SIGHUP end a run early; the results so far are reported, also of the current workload. The exit
/// code is 1 if a result was wrong.
#[derive(Args)]
pub(crate) struct Bench {
    /// Directory for the new store, on the storage to measure
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
    /// Workloads, separated by commas: get get_owned get_with miss multiget insert update delete; with key order
    /// rebuild scan insert-ordered update-ordered delete-ordered; ycsb-a to ycsb-f; transact transact-parts
    /// transact-read transact-first
    #[arg(long, value_delimiter = ',', default_value = "get,miss,multiget,insert,update,delete")]
    workloads: Vec<Workload>,
    /// Items loaded before the first workload
    #[arg(long, default_value_t = 1_000_000, value_parser = value_parser!(u64).range(1..=RECORDS_MAX))]
    records: u64,
    /// Maximum duration of each of the two passes of a workload
    #[arg(long, default_value = "5", value_parser = parse_seconds)]
    seconds: Duration,
    /// Calling threads
    #[arg(long, default_value_t = 1, value_parser = value_parser!(u64).range(1..=THREADS_MAX as u64))]
    threads: u64,
    /// Length of each key
    #[arg(long, default_value_t = 16, value_parser = key_range())]
    key_bytes: u64,
    /// Length of the prefix that all keys share, part of --key-bytes
    #[arg(long, default_value_t = 0)]
    shared_bytes: u64,
    /// Length of each value
    #[arg(long, default_value_t = 256, value_parser = value_range())]
    value_bytes: u64,
    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
    /// Count flushed lines and fences, which slows the store slightly
    #[arg(long)]
    count: bool,
    #[command(flatten)]
    latencies: Latencies,
    /// Design from the HiKV paper's comparison, instead of the HiKV engine
    #[arg(long, value_enum, default_value_t)]
    variant: Variant,
    /// Calling threads that apply writes to the key order: `beside`, `adaptive`, `adaptive-without-updates` or `12-4`
    ///
    /// With `beside`, none of them apply; the store has separate threads. This is the default without key order, with
    /// one thread, and for the variants sync and hash-only, which queue nothing.
    ///
    /// With `adaptive`, the default otherwise, as many apply as the HiKV paper's equations give.
    /// `adaptive-without-updates` leaves out updates from the backend's work.
    ///
    /// With `12-4`, twelve threads serve and four apply.
    #[arg(long)]
    split: Option<Sharing>,
    /// Keep the key order also for workloads that do not need it, with one store for all workloads
    #[arg(long)]
    ordered: bool,
    /// Queues of changes to the key order, or trees of the variant `par` [default: one per thread that may apply; 16
    /// trees]
    #[arg(long, value_parser = value_parser!(u64).range(1..=4096))]
    queues: Option<u64>,
    /// Capacity of each queue in changes, a power of two
    #[arg(long, default_value_t = 4096, value_parser = value_parser!(u64).range(2..=1 << 20))]
    queue_bound: u64,
    /// Pairs per node of the tree of the engine ink: 7, 15, 31, 63, 127 or 255 [default: 63]
    #[arg(long)]
    tree_order: Option<usize>,
    /// Keep the store, and print its directory
    #[arg(long)]
    keep: bool,
    #[command(flatten)]
    verified: Verified,
    #[command(flatten)]
    read_cache: ReadCache,
    #[command(flatten)]
    memory: Memory,
    #[command(flatten)]
    kept: Kept,
    #[command(flatten)]
    durable: Durable,
}

impl Bench {
    pub(super) fn run(self) -> Result<(), Failure> {
        self.check()?;
        let interrupt = Interrupt::install()?;
        let mut errors = 0;
        for (number, workloads) in self.workloads.chunk_by(|one, next| self.can_follow(*next, *one)).enumerate() {
            if interrupt.signal().is_none() {
                errors += self.on_fresh_store(workloads, number == 0, &interrupt)?;
            }
        }
        match (interrupt.signal(), errors) {
            (Some(signal), _) => {
                Err(Failure::Interrupted { signal, done: "the results so far are reported".to_owned() })
            }
            (None, 0) => Ok(()),
            (None, errors) => Err(Failure::Negative(format!("{errors} results were wrong"))),
        }
    }

    fn check(&self) -> Result<(), Failure> {
        let varied_bytes = self.key_bytes.saturating_sub(self.shared_bytes);
        if varied_bytes < KEY_BYTES_MIN as u64 {
            let Bench { key_bytes, shared_bytes, .. } = self;
            return Err(Failure::Error(format!(
                "keys of {key_bytes} bytes that share {shared_bytes}: at least {KEY_BYTES_MIN} bytes must differ; raise --key-bytes or \
                 lower --shared-bytes"
            )));
        }
        self.variant.check(self.kept.engine())?;
        let record_bytes = Wal::record_bytes(self.key_bytes, self.value_bytes);
        if self.variant == Variant::Wal && record_bytes > Wal::RECORD_BYTES_MAX {
            let max = Wal::RECORD_BYTES_MAX;
            return Err(Failure::Error(format!(
                "the variant wal logs {max} bytes at most, but a put has {record_bytes}; lower --key-bytes or --value-bytes"
            )));
        }
        let fixed = self.split.and_then(Sharing::fixed).map(|split| (split.serving + split.backend) as u64);
        match fixed.filter(|&count| count != self.threads) {
            Some(count) => {
                let threads = self.threads;
                Err(Failure::Error(format!(
                    "a split of {count} threads, but {threads} calling threads; give --threads {count}"
                )))
            }
            None => Ok(()),
        }
    }

    /// Checks that the engine can store keys and values of the requested lengths.
    fn check_limits(&self, store: &Store) -> Result<(), Failure> {
        let (limits, engine) = (store.limits(), store.engine_kind());
        let refused = |what, asked, limit| {
            Failure::Error(format!(
                "engine {engine} stores {what} of at most {limit} bytes, not {asked}; give shorter ones"
            ))
        };
        if self.key_bytes > limits.key_bytes_max as u64 {
            return Err(refused("keys", self.key_bytes, limits.key_bytes_max as u64));
        }
        if self.value_bytes > limits.value_bytes_max {
            return Err(refused("values", self.value_bytes, limits.value_bytes_max));
        }
        Ok(())
    }

    /// Measures workloads that can share a store; returns the number of wrong results.
    fn on_fresh_store(&self, workloads: &[Workload], is_first: bool, interrupt: &Interrupt) -> Result<u64, Failure> {
        let home = self.home().map_err(Failure::at_path(&self.dir))?;
        let is_ordered = self.is_ordered(workloads);
        let is_pool = self.plan(workloads).is_some();
        let store = self.options(is_pool, is_ordered).open(home.path())?;
        self.check_limits(&store)?;
        let (home_path, is_memory) = (home.path(), store.stats().journal.is_none());
        let measure = OfWorkloads { bench: self, workloads, interrupt, home: home_path, is_first, is_memory };
        let setting = Setting {
            home: home.path(),
            latency: self.latencies.latency(),
            range_count: self.queues.map_or(RANGE_COUNT, |count| count as usize),
            queue_bound: self.queue_bound as usize,
            backend_count: if is_pool { 0 } else { thread::available_parallelism().map_or(1, NonZero::get) },
        };
        let errors = self.variant.measure(&store, &setting, measure)?;
        store.close().map_err(Failure::at_path(home.path()))?;
        self.leave(home)?;
        Ok(errors)
    }

    /// Creates a new directory, so that no existing store is changed.
    fn home(&self) -> io::Result<TempDir> {
        fs::create_dir_all(&self.dir)?;
        tempfile::Builder::new().prefix("hikv-bench-").tempdir_in(&self.dir)
    }

    fn options(&self, is_pool: bool, is_ordered: bool) -> Options {
        let options = self.kept.options(self.read_cache.options(self.durable.options())).background(!is_pool);
        let options = self.memory.options(options);
        let options = self.variant.options(options, is_ordered);
        let options = self
            .tree_order
            .into_iter()
            .fold(options, |options, order| options.tuning(|tuning| tuning.tree_order(order)));
        self.latencies
            .options(options)
            .tuning(|tuning| tuning.verify_reads(self.verified.level()))
            .emulation(|emulation| emulation.count_persists(self.count))
            .tuning(|tuning| tuning.order_queues(self.queue_count(is_pool), self.queue_bound as usize))
    }

    fn is_ordered(&self, workloads: &[Workload]) -> bool {
        self.ordered || workloads.iter().any(|workload| workload.is_ordered())
    }

    /// Returns true if `next` can run on the store of `one`.
    fn can_follow(&self, next: Workload, one: Workload) -> bool {
        if self.ordered { next != Workload::Rebuild } else { next.can_follow(one) }
    }

    /// Returns the number of queues: by default one per thread that may apply.
    fn queue_count(&self, is_pool: bool) -> usize {
        let core_count = || thread::available_parallelism().map_or(1, NonZero::get);
        let by_default = if is_pool { self.threads as usize } else { core_count() };
        self.queues.map_or(by_default, |count| count as usize)
    }

    /// Returns the split of the calling threads, if they form a pool.
    fn plan(&self, workloads: &[Workload]) -> Option<Plan> {
        let is_ordered = self.is_ordered(workloads);
        let is_left = is_ordered && self.variant.leaves_changes();
        let by_default = if self.threads > 1 && is_left { Sharing::default() } else { Sharing::Beside };
        self.split.unwrap_or(by_default).plan()
    }

    fn config(&self, workloads: &[Workload]) -> Config {
        Config {
            workloads: workloads.to_vec(),
            records: Records {
                count: self.records,
                key_bytes: self.key_bytes as usize,
                shared_bytes: self.shared_bytes as usize,
                value_bytes: self.value_bytes as usize,
            },
            pass: self.seconds,
            threads: self.threads as usize,
            plan: self.plan(workloads),
            keeps_order: self.ordered,
            seed: 0,
        }
    }

    fn leave(&self, home: TempDir) -> Result<(), Failure> {
        if self.keep {
            print_error(&format!("the store is kept in {}", home.keep().display()));
            return Ok(());
        }
        home.close().map_err(Failure::at_path(&self.dir))
    }
}

fn parse_seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "expected a number of seconds".to_owned())?;
    Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
}

fn key_range() -> RangedU64ValueParser {
    RangedU64ValueParser::new().range(KEY_BYTES_MIN as u64..=Limits::KEY_BYTES_MAX as u64)
}

fn value_range() -> RangedU64ValueParser {
    RangedU64ValueParser::new().range(VALUE_BYTES_MIN as u64..=Limits::VALUE_BYTES_MAX)
}
