//! PMEKV (Cai and others, 2020), tables 1 to 4 and figures 6 to 9: inserts, and YCSB A and B, by the number of threads,
//! records and requests; with records of the paper's size, and with values of 256 bytes.
//!
//! Inserts start with empty systems, created again for every turn. For requests, a stage consists of all systems,
//! loaded with the same records. Its jobs are workloads of figures, and in each round every system has a turn at every
//! job, beginning with another system each time. A system whose program is not installed is left out and reported.

mod claims;
mod device;
mod host_tree;
mod printed;
mod servers;
mod system;

use crate::machine::Machine;
use crate::paper::{Figure, Report};
use crate::point::Point;
use crate::records::Shape;
use crate::work::{Bench, Measured, Work};
use crate::{Error, Settings};

pub(crate) use claims::PAPER;
use system::{Built, Place};

/// The paper's records.
const PRINTED: Shape = Shape::new(16, 10 << 10);
const OURS: Shape = Shape::new(16, 256);
/// Records and requests of the paper, where the figure does not vary them.
const PRINTED_COUNT: u64 = 1_000;
const READ_PERCENT_A: u32 = 50;
const READ_PERCENT_B: u32 = 95;

/// A turn at a workload of a figure.
struct Job {
    figure: &'static str,
    workload: &'static str,
    at: f64,
    work: Work,
    threads: usize,
    /// The operations of all threads together.
    operations: u64,
}

/// Jobs for systems that hold the same number of records.
struct Stage {
    shape: Shape,
    records: u64,
    jobs: Vec<Job>,
}

fn ycsb(read_percent: u32) -> Work {
    Work::Ycsb { read_percent, is_skewed: true }
}

/// Returns a job for each number of threads.
fn by_threads(figure: &'static str, workload: &'static str, at: &[f64], work: Work, operations: u64) -> Vec<Job> {
    at.iter().map(|&at| Job { figure, workload, at, work, threads: at as usize, operations }).collect()
}

fn on_one_thread(figure: &'static str, workload: &'static str, at: f64, read_percent: u32, operations: u64) -> Job {
    Job { figure, workload, at, work: ycsb(read_percent), threads: 1, operations }
}

/// Returns the stages that start with empty systems.
fn inserts(settings: &Settings) -> [Stage; 2] {
    let stage = |shape, jobs| Stage { shape, records: 0, jobs };
    let printed = settings.part_of(PRINTED_COUNT);
    let mut jobs = by_threads("table-1", claims::INSERT, claims::ONE, Work::Insert, printed);
    jobs.extend(by_threads("table-2", claims::INSERT_THREADS, claims::MORE_THREADS, Work::Insert, printed));
    let ours = by_threads("our-insert", claims::OUR_INSERT, claims::THREADS, Work::Insert, settings.operations as u64);
    [stage(PRINTED, jobs), stage(OURS, ours)]
}

/// Returns the stages that start with loaded systems.
fn requests(settings: &Settings) -> Vec<Stage> {
    let printed = settings.part_of(PRINTED_COUNT);
    let mut jobs = by_threads("table-3", claims::A_THREADS, claims::THREADS, ycsb(READ_PERCENT_A), printed);
    jobs.extend(by_threads("table-4", claims::B_THREADS, claims::THREADS, ycsb(READ_PERCENT_B), printed));
    for &at in claims::REQUESTS {
        let count = settings.part_of(at as u64);
        jobs.push(on_one_thread("8", claims::A_REQUESTS, at, READ_PERCENT_A, count));
        jobs.push(on_one_thread("9", claims::B_REQUESTS, at, READ_PERCENT_B, count));
    }
    let mut stages = vec![Stage { shape: PRINTED, records: printed, jobs }];
    stages.extend(claims::RECORDS.iter().map(|&at| {
        let of = |figure, workload, read_percent| on_one_thread(figure, workload, at, read_percent, printed);
        let jobs = vec![of("6", claims::A_RECORDS, READ_PERCENT_A), of("7", claims::B_RECORDS, READ_PERCENT_B)];
        Stage { shape: PRINTED, records: settings.part_of(at as u64), jobs }
    }));
    let ours = |figure, workload, read_percent| {
        by_threads(figure, workload, claims::THREADS, ycsb(read_percent), settings.operations as u64)
    };
    let mut jobs = ours("our-a", claims::OUR_A, READ_PERCENT_A);
    jobs.extend(ours("our-b", claims::OUR_B, READ_PERCENT_B));
    stages.push(Stage { shape: OURS, records: settings.records, jobs });
    stages
}

impl Settings {
    /// Returns the requested percentage of one of the paper's counts.
    fn part_of(&self, printed: u64) -> u64 {
        (printed * self.percent / 100).max(1)
    }

    fn place(&self) -> Place<'_> {
        Place { dir: &self.dir, is_counting: self.is_counting }
    }

    /// Returns the systems that are selected and can be run.
    fn built(&self) -> Vec<&'static Built> {
        let lacks = |name: &str| PAPER.programs.iter().any(|program| program.system == name && !program.is_there());
        system::BUILT.iter().filter(|(name, _)| self.wants(name) && !lacks(name)).collect()
    }
}

/// Iterates over all items, beginning with another one each time.
fn in_turns<T>(all: &mut [T]) -> impl Iterator<Item = &mut T> {
    all.rotate_left(all.len().min(1));
    all.iter_mut()
}

fn run(
    figures: &[&'static Figure],
    settings: &Settings,
    _machine: &Machine,
    report: &mut Report<'_>,
) -> Result<(), Error> {
    let is_chosen = |job: &Job| figures.iter().any(|figure| figure.name == job.figure);
    for mut stage in inserts(settings) {
        stage.jobs.retain(is_chosen);
        stage.insert(settings, report)?;
    }
    for mut stage in requests(settings) {
        stage.jobs.retain(is_chosen);
        if !stage.jobs.is_empty() {
            stage.request(settings, report)?;
        }
    }
    Ok(())
}

impl Stage {
    /// Runs every job with every system, created for the job.
    fn insert(&self, settings: &Settings, report: &mut Report<'_>) -> Result<(), Error> {
        let mut systems = settings.built();
        for round in 0..settings.rounds {
            for job in &self.jobs {
                for (name, make) in in_turns(&mut systems) {
                    let mut bench = Bench::empty(name, make(settings.place())?, self.shape);
                    report(job.measure(&mut bench, round)?);
                }
            }
        }
        Ok(())
    }

    /// Runs every job with every system in turns.
    fn request(&self, settings: &Settings, report: &mut Report<'_>) -> Result<(), Error> {
        let load = |(name, make): &Built| Bench::load(name, make(settings.place())?, self.shape, self.records);
        let mut benches = settings.built().into_iter().map(load).collect::<Result<Vec<_>, Error>>()?;
        for round in 0..settings.rounds {
            for job in &self.jobs {
                for bench in in_turns(&mut benches) {
                    report(job.measure(bench, round)?);
                }
            }
        }
        Ok(())
    }
}

impl Job {
    fn measure(&self, bench: &mut Bench, round: usize) -> Result<Point, Error> {
        let &Job { workload, at, work, threads, operations, .. } = self;
        let count = (operations / threads as u64).max(1) as usize;
        let measured = bench.turn(work, (threads, count, count), round as u64);
        let Measured { operations, elapsed, wrong, accesses, .. } =
            measured.map_err(|error| format!("{workload}, {}: {error}", bench.name))?;
        let ns = elapsed.as_nanos() as f64 / operations as f64;
        Ok(Point { ns, operations, wrong, accesses, ..Point::of(workload, bench.name, at, round) })
    }
}
