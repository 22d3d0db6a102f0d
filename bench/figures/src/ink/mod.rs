//! InK (Ha and Kim, 2020), figures 6 to 12: keys of 23 bytes and values of 100 bytes. Trees of six orders run on one
//! thread. At the paper's order several threads and YCSB's mixes run, compared with RocksDB if this program was built
//! with RocksDB.
//!
//! A stage is a set of systems that hold the same records, and a list of jobs, each of them a workload of a figure. In
//! each round every system has a turn at every job. The records of the operations are drawn before the clock starts,
//! the same for all systems.

mod claims;
mod parts;
mod system;

use std::time::Duration;

use crate::machine::Machine;
use crate::paper::{Figure, Report};
use crate::point::Point;
use crate::records::Shape;
use crate::work::{Bench, Measured, Work};
use crate::{Error, Settings};

pub(crate) use claims::PAPER;
use parts::Sampled;
use system::{BUILT, Made};

/// Keys of 23 bytes and values of 100 bytes: YCSB's.
const SHAPE: Shape = Shape::new(23, 100);
/// A turn of inserts adds one pair for this many existing ones.
const INSERTED_OF: u64 = 20;
/// The measured orders.
const ORDERS: [f64; 6] = [7.0, 15.0, 31.0, 63.0, 127.0, 255.0];
/// The paper's order from figure 8 on.
const ORDER: usize = 63;
/// Numbers of threads.
const THREADS: [f64; 4] = [1.0, 2.0, 3.0, 4.0];
/// Parts of a turn, in percent of its operations.
const TIMES: [f64; 20] = [
    5.0, 10.0, 15.0, 20.0, 25.0, 30.0, 35.0, 40.0, 45.0, 50.0, 55.0, 60.0, 65.0, 70.0, 75.0, 80.0, 85.0, 90.0, 95.0,
    100.0,
];
/// Percentiles; 0 stands for the average.
const PERCENTILES: [f64; 4] = [0.0, 90.0, 99.0, 99.9];

/// The kind of points that a turn gives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Reported {
    /// Its average.
    Whole,
    /// The time of each twentieth of the operations, and the slowest and the fastest of these.
    OverTime { slowest: &'static str, fastest: &'static str },
    /// Percentiles of single operations.
    Tails,
    /// The parts of the time.
    Parts,
}

/// A workload of a figure.
struct Job {
    figure: &'static str,
    workload: &'static str,
    at: f64,
    systems: &'static [&'static str],
    work: Work,
    threads: usize,
    reported: Reported,
}

/// Systems that hold the same number of records.
struct Stage {
    order: usize,
    records: u64,
    jobs: Vec<Job>,
}

const READ_UPDATE_INSERT: [Work; 3] = [Work::Read, Work::Update, Work::Insert];

fn stages(settings: &Settings) -> Vec<Stage> {
    let mut stages: Vec<Stage> = ORDERS.into_iter().map(|order| of_order(order, settings.records)).collect();
    let few = jobs("9", claims::OF_FEW, (1.0, 1), claims::INK, Reported::Whole);
    stages.push(Stage { order: ORDER, records: settings.few_records, jobs: few });
    stages.push(Stage { order: ORDER, records: settings.records, jobs: beside_rocksdb() });
    stages
}

/// Returns reads, updates and inserts as a figure's workloads.
fn jobs(
    figure: &'static str,
    workloads: [&'static str; 3],
    (at, threads): (f64, usize),
    systems: &'static [&'static str],
    reported: Reported,
) -> Vec<Job> {
    let works = workloads.into_iter().zip(READ_UPDATE_INSERT);
    works.map(|(workload, work)| Job { figure, workload, at, systems, work, threads, reported }).collect()
}

fn of_order(order: f64, records: u64) -> Stage {
    let mut all = jobs("6", claims::BY_ORDER, (order, 1), claims::INKS, Reported::Whole);
    all.extend(jobs("7", claims::BY_PART, (order, 1), claims::INK, Reported::Parts));
    Stage { order: order as usize, records, jobs: all }
}

fn beside_rocksdb() -> Vec<Job> {
    let job = |figure, (workload, work), (at, threads), reported| Job {
        figure,
        workload,
        at,
        systems: claims::INK_ROCKSDB,
        work,
        threads,
        reported,
    };
    let mut jobs = Vec::new();
    for (name, read_percent) in [("a", 50), ("b", 95), ("c", 100)] {
        for (is_skewed, names) in [(false, claims::UNIFORM), (true, claims::ZIPFIAN)] {
            let workload = names.into_iter().find(|workload| workload.starts_with(name)).expect("each has a name");
            jobs.push(job("10", (workload, Work::Ycsb { read_percent, is_skewed }), (1.0, 1), Reported::Whole));
        }
        for [workload, slowest, fastest] in claims::OVER_TIME {
            if workload.starts_with(name) {
                let threads = if workload.ends_with("-1") { 1 } else { THREADS.len() };
                let work = Work::Ycsb { read_percent, is_skewed: true };
                jobs.push(job("11", (workload, work), (0.0, threads), Reported::OverTime { slowest, fastest }));
            }
        }
    }
    for (workload, threads) in claims::TAILS.into_iter().zip([1, THREADS.len()]) {
        let work = Work::Ycsb { read_percent: 50, is_skewed: true };
        jobs.push(job("12", (workload, work), (0.0, threads), Reported::Tails));
    }
    // Inserts are last, so that the workloads before them read exactly the requested number of records.
    let threads = THREADS
        .into_iter()
        .flat_map(|at| self::jobs("8", claims::BY_THREADS, (at, at as usize), claims::BY_MEDIUM, Reported::Whole));
    jobs.extend(threads);
    jobs
}

fn run(
    figures: &[&'static Figure],
    settings: &Settings,
    _machine: &Machine,
    report: &mut Report<'_>,
) -> Result<(), Error> {
    for Stage { order, records, mut jobs } in stages(settings) {
        jobs.retain(|job| figures.iter().any(|figure| figure.name == job.figure));
        let is_wanted = |name: &str| settings.wants(name) && jobs.iter().any(|job| job.systems.contains(&name));
        let made = Made { dir: &settings.dir, order, read_block_ns: settings.read_block_ns };
        let mut benches: Vec<Bench> = BUILT
            .iter()
            .filter(|(name, _)| is_wanted(name))
            .map(|(name, make)| Bench::load(name, make(&made)?, SHAPE, records))
            .collect::<Result<_, Error>>()?;
        let count = benches.len();
        for round in 0..settings.rounds {
            for job in &jobs {
                // The first system changes from round to round.
                for bench in (0..count).map(|i| (i + round) % count) {
                    let bench = &mut benches[bench];
                    if job.systems.contains(&bench.name) {
                        job.measure(bench, settings.operations, round, report)?;
                    }
                }
            }
        }
    }
    Ok(())
}

impl Job {
    fn measure(&self, bench: &mut Bench, count: usize, round: usize, report: &mut Report<'_>) -> Result<(), Error> {
        let count = match self.work {
            Work::Insert => (bench.record_count() / INSERTED_OF / self.threads as u64).max(1) as usize,
            _ => count,
        };
        let (count, lap) = match self.reported {
            Reported::Whole | Reported::Parts => (count, count),
            Reported::OverTime { .. } => (count.next_multiple_of(TIMES.len()), count.div_ceil(TIMES.len())),
            Reported::Tails => (count, 1),
        };
        let sampled = (self.reported == Reported::Parts).then(Sampled::start).transpose()?;
        let measured = bench.turn(self.work, (self.threads, count, lap), round as u64)?;
        let shares = sampled.map_or(Ok(Vec::new()), Sampled::shares)?;
        for (number, (workload, system, at, ns)) in
            self.points_of(bench.name, &measured, &shares).into_iter().enumerate()
        {
            let wrong = if number == 0 { measured.wrong } else { 0 };
            report(Point {
                workload,
                system,
                at,
                round,
                operations: measured.operations,
                ns,
                wrong,
                refused: 0,
                accesses: measured.accesses.filter(|_| self.reported == Reported::Whole),
            });
        }
        Ok(())
    }

    /// Returns the points: workload, system, place, and time per operation.
    fn points_of(
        &self,
        system: &'static str,
        measured: &Measured,
        shares: &[(&'static str, f64)],
    ) -> Vec<ReportedPoint> {
        let ns = measured.elapsed.as_nanos() as f64 / measured.operations as f64;
        match self.reported {
            Reported::Whole => vec![(self.workload, system, self.at, ns)],
            Reported::Parts => shares.iter().map(|&(part, share)| (self.workload, part, self.at, ns * share)).collect(),
            Reported::Tails => PERCENTILES
                .into_iter()
                .zip(tails(&measured.laps))
                .map(|(at, ns)| (self.workload, system, at, ns))
                .collect(),
            Reported::OverTime { slowest, fastest } => {
                let times = over_time(measured);
                let ends = times
                    .iter()
                    .copied()
                    .fold((0.0, f64::INFINITY), |(most, least): (f64, f64), ns| (most.max(ns), least.min(ns)));
                let ends = [(slowest, system, 1.0, ends.0), (fastest, system, 1.0, ends.1)];
                ends.into_iter()
                    .chain(TIMES.into_iter().zip(times).map(|(at, ns)| (self.workload, system, at, ns)))
                    .collect()
            }
        }
    }
}

type ReportedPoint = (&'static str, &'static str, f64, f64);

/// Returns the time per operation in each part of a turn, of all threads together.
fn over_time(measured: &Measured) -> Vec<f64> {
    let of_thread = measured.operations as f64 / (measured.laps.len() * TIMES.len()) as f64;
    let rate =
        |part: usize| measured.laps.iter().map(|laps| of_thread / laps[part].as_nanos().max(1) as f64).sum::<f64>();
    (0..TIMES.len()).map(|part| 1.0 / rate(part)).collect()
}

/// Returns the average and the percentiles.
fn tails(laps: &[Vec<Duration>]) -> Vec<f64> {
    let mut all: Vec<f64> = laps.iter().flatten().map(|lap| lap.as_nanos() as f64).collect();
    all.sort_by(f64::total_cmp);
    let percentile = |percent: f64| match percent {
        0.0 => all.iter().sum::<f64>() / all.len() as f64,
        percent => all[((all.len() as f64 * percent / 100.0).ceil() as usize).clamp(1, all.len()) - 1],
    };
    PERCENTILES.map(percentile).to_vec()
}
