//! HiKV (Xia and others, USENIX ATC 2017), figures 1, 5 to 8, 10, 12 and 13, and recovery: keys of 16 bytes and values
//! of 256 bytes, beside NV-Tree, FPTree, and FPTree with a cache in DRAM.
//!
//! All stores are loaded without delays and opened again, after a crash as far as they know, with the memory of each
//! stage. In each round every store has a turn at every job of the stage.

mod claims;
mod dram;
mod space;
mod system;
mod work;

use std::time::Instant;

use tempfile::TempDir;

use crate::machine::Machine;
use crate::paper::{Figure, Report, Shown};
use crate::point::Point;
use crate::records::Shape;
use crate::{Error, Settings};

pub(crate) use claims::PAPER;
use system::{Place, Slowness};
use work::{Bench, Measured, Work, YCSB};

/// Keys of 16 bytes and values of 256 bytes.
const SHAPE: Shape = Shape::new(16, 256);
/// The persist latencies of figures 8 and 10, in nanoseconds.
const PERSISTS_NS: [f64; 5] = [50.0, 200.0, 600.0, 1000.0, 1400.0];
/// The persist latency of the other figures.
const PERSIST_NS: f64 = 600.0;
/// The read latencies of figure 12: DRAM's, and twice that.
const READS_NS: [f64; 2] = [60.0, 120.0];
/// The emulated cache holds this share of the pairs' bytes: about as the 40 MB of the paper's processors of its 16 GB.
const CACHED_SHARE: u64 = 400;
/// Writers of the trees, which have as many threads as HiKV with its backend thread.
const TREE_WRITER_COUNT: u64 = 2;

/// A workload, and the figures that show it, each with its name there and its unit.
struct Job {
    work: Work,
    at: f64,
    shown: Vec<(&'static str, &'static str, Shown)>,
}

/// Jobs on the same memory.
struct Stage {
    slowness: Slowness,
    jobs: Vec<Job>,
}

fn stages(settings: &Settings) -> Vec<Stage> {
    let cache_bytes = settings.pairs * 288 / CACHED_SHARE;
    let writing = PERSISTS_NS.map(|ns| Stage {
        slowness: Slowness { persist_ns: ns as u64, ..Slowness::default() },
        jobs: if ns == PERSIST_NS { all_jobs() } else { write_jobs(ns) },
    });
    let reading = READS_NS.map(|ns| Stage {
        // Reads of this machine's own memory take as long as the paper's DRAM.
        slowness: Slowness { persist_ns: PERSIST_NS as u64, read_line_ns: (ns - READS_NS[0]) as u64, cache_bytes },
        jobs: [(Work::Get, "get"), (Work::Scan, "scan")]
            .map(|(work, name)| Job { work, at: ns, shown: vec![("12", name, Shown::Latency)] })
            .into(),
    });
    writing.into_iter().chain(reading).collect()
}

/// The jobs of figures 8 and 10.
fn write_jobs(at: f64) -> Vec<Job> {
    let job = |work, shown| Job { work, at, shown };
    vec![
        job(Work::Put, vec![("8", "put-by-persist", Shown::Rate), ("10", "put-latency-by-persist", Shown::Latency)]),
        job(Work::Update, vec![("8", "update-by-persist", Shown::Rate)]),
        job(Work::Delete, vec![("8", "delete-by-persist", Shown::Rate)]),
    ]
}

/// The jobs at the usual latency: also those of figures 5 to 7.
fn all_jobs() -> Vec<Job> {
    let single = [
        (Work::Put, ["put-latency", "put-rate"]),
        (Work::Get, ["get-latency", "get-rate"]),
        (Work::Scan, ["scan-latency", "scan-rate"]),
        (Work::Update, ["update-latency", "update-rate"]),
        (Work::Delete, ["delete-latency", "delete-rate"]),
    ];
    let single = single.into_iter().map(|(work, [latency, rate])| Job {
        work,
        at: 1.0,
        shown: vec![("5", latency, Shown::Latency), ("6", rate, Shown::Rate)],
    });
    let mixes = YCSB.into_iter().map(|(name, mix)| Job {
        work: Work::Ycsb(mix),
        at: 2.0,
        shown: vec![("7", name, Shown::Rate)],
    });
    single.chain(write_jobs(PERSIST_NS)).chain(mixes).collect()
}

/// A store that is loaded: its file, and what opens it.
struct Loaded {
    number: usize,
    home: TempDir,
    /// The number of records, which grows with the inserts of YCSB.
    pair_count: u64,
}

fn run(
    figures: &[&'static Figure],
    settings: &Settings,
    _machine: &Machine,
    report: &mut Report<'_>,
) -> Result<(), Error> {
    let shows = |figure: &str| figures.iter().any(|shown| shown.name == figure);
    if shows("1") {
        dram::run(settings, report)?;
    }
    if shows("13") {
        space::run(settings, report)?;
    }
    let mut stages = stages(settings);
    for job in stages.iter_mut().flat_map(|stage| &mut stage.jobs) {
        job.shown.retain(|(figure, ..)| shows(figure));
    }
    stages.retain(|stage| stage.jobs.iter().any(|job| !job.shown.is_empty()));
    let is_shown = |name: &str| {
        let of_stages = ["5", "6", "7", "8", "10", "12", "recovery"];
        figures.iter().any(|figure| of_stages.contains(&figure.name) && figure.systems.contains(&name))
    };
    let wanted = (0..system::ALL.len()).filter(|&number| {
        let name = system::ALL[number].0;
        is_shown(name) && settings.wants(name)
    });
    let mut loaded = wanted.map(|number| Loaded::load(number, settings)).collect::<Result<Vec<_>, Error>>()?;
    if shows("recovery") {
        for round in 0..settings.rounds {
            loaded.iter().try_for_each(|store| store.recover(round, report))?;
        }
    }
    stages.iter().try_for_each(|stage| stage.run(&mut loaded, figures, settings, report))
}

impl Loaded {
    fn load(number: usize, settings: &Settings) -> Result<Loaded, Error> {
        let (home, pair_count) = (tempfile::tempdir_in(&settings.dir)?, settings.pairs);
        let store = Loaded { number, home, pair_count };
        store.open(Slowness::default(), true)?.load()?;
        Ok(store)
    }

    fn name(&self) -> &'static str {
        system::ALL[self.number].0
    }

    fn open(&self, slowness: Slowness, is_new: bool) -> Result<Bench, Error> {
        let place = Place { dir: self.home.path(), slowness, pair_count: self.pair_count, is_new };
        let (name, make) = system::ALL[self.number];
        Ok(Bench::of(name, make(&place)?, SHAPE, self.pair_count))
    }

    /// Reports the time of opening, for each pair.
    fn recover(&self, round: usize, report: &mut Report<'_>) -> Result<(), Error> {
        let (slowness, start) = (Slowness { persist_ns: PERSIST_NS as u64, ..Slowness::default() }, Instant::now());
        let opened = self.open(slowness, false)?;
        let ns = start.elapsed().as_nanos() as f64 / self.pair_count as f64;
        drop(opened);
        report(Point { ns, operations: self.pair_count, ..Point::of("recovery", self.name(), 1.0, round) });
        Ok(())
    }
}

impl Stage {
    fn run(
        &self,
        loaded: &mut [Loaded],
        figures: &[&'static Figure],
        settings: &Settings,
        report: &mut Report<'_>,
    ) -> Result<(), Error> {
        let mut benches = loaded.iter().map(|store| store.open(self.slowness, false)).collect::<Result<Vec<_>, _>>()?;
        let count = benches.len();
        for round in 0..settings.rounds {
            for job in self.jobs.iter().filter(|job| !job.shown.is_empty()) {
                // The first store changes from round to round.
                for bench in (0..count).map(|i| (i + round) % count) {
                    job.measure(&mut benches[bench], figures, settings, round, report)?;
                }
            }
        }
        for (store, bench) in loaded.iter_mut().zip(benches) {
            store.pair_count = bench.end()?;
        }
        Ok(())
    }
}

impl Job {
    fn measure(
        &self,
        bench: &mut Bench,
        figures: &[&'static Figure],
        settings: &Settings,
        round: usize,
        report: &mut Report<'_>,
    ) -> Result<(), Error> {
        let has = |name: &str| figures.iter().any(|figure| figure.name == name && figure.systems.contains(&bench.name));
        let shown: Vec<_> = self.shown.iter().filter(|(figure, ..)| has(figure)).collect();
        if shown.is_empty() {
            return Ok(());
        }
        let thread_count = match (self.work, bench.name.starts_with("hikv")) {
            (Work::Ycsb(_), false) => TREE_WRITER_COUNT,
            (work, false) if work.writes() => TREE_WRITER_COUNT,
            _ => 1,
        };
        let count = settings.operations.min(bench.record_count() as usize / 10).max(1);
        let Measured { operations, elapsed_ns, wrong, accesses } =
            bench.turn(self.work, thread_count, count, round as u64)?;
        for (number, &&(_, workload, unit)) in shown.iter().enumerate() {
            let together = if unit == Shown::Latency { thread_count } else { 1 };
            report(Point {
                ns: elapsed_ns * together as f64 / operations as f64,
                operations,
                wrong: if number == 0 { wrong } else { 0 },
                accesses: Some(accesses),
                ..Point::of(workload, bench.name, self.at, round)
            });
        }
        Ok(())
    }
}
