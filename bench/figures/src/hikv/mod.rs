//! HiKV (Xia and others, USENIX ATC 2017), figures 1, 5 to 8, 10, 12 and 13, and recovery: keys of 16 bytes and values
//! of 256 bytes, beside NV-Tree, FPTree, and FPTree with a cache in DRAM.
//!
//! All stores are loaded without delays and opened again, after a crash as far as they know, with the memory of each
//! stage. In each round every store has a turn at every job of the stage.

mod causes;
mod claims;
mod dram;
mod modelled;
mod predicted;
mod services;
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
use services::SERVICES;
use system::{Place, Slowness};
use work::{Bench, Measured, Mix, Work, YCSB};

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
    /// One thread does everything, the work of HiKV's backend thread included.
    is_alone: bool,
    jobs: Vec<Job>,
}

fn stages(settings: &Settings) -> Vec<Stage> {
    let cache_bytes = settings.pairs * 288 / CACHED_SHARE;
    let writing = PERSISTS_NS.map(|ns| Stage {
        slowness: Slowness { persist_ns: ns as u64, ..Slowness::default() },
        is_alone: false,
        jobs: if ns == PERSIST_NS { all_jobs() } else { write_jobs(ns) },
    });
    let reading = READS_NS.map(|ns| Stage {
        // Reads of this machine's own memory take as long as the paper's DRAM.
        slowness: Slowness { persist_ns: PERSIST_NS as u64, read_line_ns: (ns - READS_NS[0]) as u64, cache_bytes },
        is_alone: false,
        jobs: [(Work::Get, "get"), (Work::Scan, "scan")]
            .map(|(work, name)| Job { work, at: ns, shown: vec![("12", name, Shown::Latency)] })
            .into(),
    });
    let alone = Stage {
        slowness: Slowness { persist_ns: PERSIST_NS as u64, ..Slowness::default() },
        is_alone: true,
        jobs: mixes(1.0),
    };
    let mut stages: Vec<Stage> = writing.into_iter().chain([alone]).chain(reading).collect();
    // Two threads leave stores whose exact shape depends on how they met, so they come last.
    stages.sort_by_key(|stage| stage.jobs.iter().any(|job| matches!(job.work, Work::Ycsb(_)) && job.at == 2.0));
    stages
}

/// YCSB's mixes on one thread or two.
fn mixes(at: f64) -> Vec<Job> {
    let job = |(name, mix)| Job { work: Work::Ycsb(mix), at, shown: vec![("7", name, Shown::Rate)] };
    YCSB.into_iter().map(job).collect()
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
    single.chain(write_jobs(PERSIST_NS)).chain(mixes(2.0)).collect()
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
        store.open(Slowness::default(), true, settings.is_counting)?.load()?;
        Ok(store)
    }

    fn name(&self) -> &'static str {
        system::ALL[self.number].0
    }

    fn open(&self, slowness: Slowness, is_new: bool, is_alone: bool) -> Result<Bench, Error> {
        let &Loaded { ref home, pair_count, .. } = self;
        let place = Place { dir: home.path(), slowness, pair_count, is_new, is_alone };
        let (name, make) = system::ALL[self.number];
        Ok(Bench::of(name, make(&place)?, SHAPE, self.pair_count))
    }

    /// Reports the time of opening, for each pair.
    fn recover(&self, round: usize, report: &mut Report<'_>) -> Result<(), Error> {
        let (slowness, start) = (Slowness { persist_ns: PERSIST_NS as u64, ..Slowness::default() }, Instant::now());
        let opened = self.open(slowness, false, false)?;
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
        let is_alone = self.is_alone || settings.is_counting;
        let open = |store: &Loaded| store.open(self.slowness, false, is_alone);
        let mut benches = loaded.iter().map(open).collect::<Result<Vec<_>, _>>()?;
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
        let (by_latency, by_rate): (Vec<_>, Vec<_>) =
            self.shown.iter().filter(|(figure, ..)| has(figure)).partition(|(.., unit)| *unit == Shown::Latency);
        match bench.name {
            // In rates, it has as many threads as HiKV with its backend thread, each of which serves.
            "hikv-sync" => {
                let thread_count = if self.work.writes() && !settings.is_counting { TREE_WRITER_COUNT } else { 1 };
                self.measure_on(1, &by_latency, bench, settings, round, report)?;
                self.measure_on(thread_count, &by_rate, bench, settings, round, report)
            }
            name => {
                let thread_count = match (self.work, name == "hikv") {
                    (Work::Ycsb(_), false) => self.at as u64,
                    (work, false) if work.writes() && !settings.is_counting => TREE_WRITER_COUNT,
                    _ => 1,
                };
                let shown: Vec<_> = by_latency.into_iter().chain(by_rate).collect();
                self.measure_on(thread_count, &shown, bench, settings, round, report)
            }
        }
    }

    /// Runs a turn on this many threads, unless no figure shows it.
    fn measure_on(
        &self,
        thread_count: u64,
        shown: &[&(&'static str, &'static str, Shown)],
        bench: &mut Bench,
        settings: &Settings,
        round: usize,
        report: &mut Report<'_>,
    ) -> Result<(), Error> {
        if shown.is_empty() {
            return Ok(());
        }
        // How two threads meet decides some accesses, even of a store next to them: they share the epochs.
        let is_pair = matches!(self.work, Work::Ycsb(_)) && self.at == 2.0;
        let are_exact = !(is_pair && settings.is_counting);
        let count = settings.operations.min(bench.record_count() as usize / 10).max(1);
        if let (Work::Ycsb(mix), true) = (self.work, self.at == 1.0) {
            report_services(bench, mix, count, round, report)?;
        }
        let Measured { operations, elapsed_ns, wrong, accesses } =
            bench.turn(self.work, thread_count, count, round as u64)?;
        for (number, &&(_, workload, unit)) in shown.iter().enumerate() {
            let together = if unit == Shown::Latency { thread_count } else { 1 };
            report(Point {
                ns: elapsed_ns * together as f64 / operations as f64,
                operations,
                wrong: if number == 0 { wrong } else { 0 },
                accesses: are_exact.then_some(accesses),
                ..Point::of(workload, bench.name, self.at, round)
            });
        }
        Ok(())
    }
}

/// Reports the times of a mix's operations, the service times of the model.
fn report_services(
    bench: &mut Bench,
    mix: Mix,
    count: usize,
    round: usize,
    report: &mut Report<'_>,
) -> Result<(), Error> {
    let number = YCSB.iter().position(|(_, known)| *known == mix).expect("the mix is one of YCSB's");
    let sampled = bench.sample(mix, count, !(round as u64))?;
    let times = SERVICES[number].into_iter().zip(sampled.times_ns());
    for (workload, (operations, ns)) in times.filter_map(|(workload, time)| Some((workload, time?))) {
        report(Point { ns, operations, ..Point::of(workload, bench.name, 1.0, round) });
    }
    match sampled.wrong {
        0 => Ok(()),
        wrong => Err(format!("{}: {wrong} wrong results", bench.name).into()),
    }
}
