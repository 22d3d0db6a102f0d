//! The measurements: points, their table, and JSON.

use std::io::{self, Write};

use serde::{Deserialize, Serialize};

use crate::Error;
use crate::paper::{Figure, Paper};

/// A turn of a system at a workload.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Point {
    pub(crate) workload: &'static str,
    pub(crate) system: &'static str,
    /// The place on the figure's axis: a load factor, a number of threads.
    pub(crate) at: f64,
    pub(crate) round: usize,
    pub(crate) operations: u64,
    /// The average time per operation; in figures of memory, bytes per pair.
    pub(crate) ns: f64,
    /// Wrong results.
    pub(crate) wrong: u64,
    /// Inserts that found no space; they do not count as operations.
    pub(crate) refused: u64,
    /// The accesses to the emulated device, where it counts them.
    pub(crate) accesses: Option<Accesses>,
}

impl Point {
    /// Returns a point of one operation that takes no time, for the fields that are left.
    pub(crate) fn of(workload: &'static str, system: &'static str, at: f64, round: usize) -> Point {
        Point { workload, system, at, round, operations: 1, ns: 0.0, wrong: 0, refused: 0, accesses: None }
    }
}

/// Exact counts per operation.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Accesses {
    /// Blocks that were read from the device's memory.
    pub(crate) block_reads: f64,
    /// Cache lines that were written back, or written past the cache; 0 in measurements older than this count.
    #[serde(default)]
    pub(crate) lines_written: f64,
    pub(crate) fences: f64,
}

/// A point as read from a file.
#[derive(Deserialize)]
struct Saved {
    workload: String,
    system: String,
    at: f64,
    round: usize,
    operations: u64,
    ns: f64,
    wrong: u64,
    refused: u64,
    accesses: Option<Accesses>,
}

impl Saved {
    /// Returns the point of a paper; `None` if no figure shows its workload or its system.
    fn of(self, paper: &Paper) -> Option<Point> {
        let Saved { workload, system, at, round, operations, ns, wrong, refused, accesses } = self;
        let find = |name: &str, names: fn(&'static Figure) -> &'static [&'static str]| {
            paper.figures.iter().flat_map(names).copied().find(|known| *known == name)
        };
        let workload = find(&workload, |figure| figure.workloads).or_else(|| {
            let claims = paper.figures.iter().flat_map(|figure| figure.claims);
            let sides = claims.flat_map(|claim| [&claim.ratio.over, &claim.ratio.under]);
            sides.flat_map(|side| side.workloads).copied().find(|known| *known == workload)
        })?;
        let system = find(&system, |figure| figure.systems)?;
        Some(Point { workload, system, at, round, operations, ns, wrong, refused, accesses })
    }
}

/// All points.
#[derive(Default, Debug)]
pub(crate) struct Points(Vec<Point>);

impl Points {
    pub(crate) fn add(&mut self, point: Point) {
        self.0.push(point);
    }

    pub(crate) fn add_all(&mut self, points: &Points) {
        self.0.extend_from_slice(&points.0);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Removes the points at every place where `other` has some.
    pub(crate) fn remove_places_of(&mut self, other: &Points) {
        let places = other.places();
        self.0.retain(|point| !places.contains(&(point.workload, point.system, point.at)));
    }

    /// Returns true if a point is of this figure.
    pub(crate) fn are_of(&self, figure: &Figure) -> bool {
        let is_of = |point: &Point| {
            let Point { workload, system, at, .. } = point;
            figure.workloads.contains(workload) && figure.systems.contains(system) && figure.at.contains(at)
        };
        self.0.iter().any(is_of)
    }

    pub(crate) fn wrong_count(&self) -> u64 {
        self.0.iter().map(|point| point.wrong).sum()
    }

    fn of<'a>(&'a self, workload: &'a str, system: &'a str, at: f64) -> impl Iterator<Item = &'a Point> {
        self.0.iter().filter(move |point| (point.workload, point.system, point.at) == (workload, system, at))
    }

    /// Returns the time per operation in the median round.
    pub(crate) fn median_ns(&self, workload: &str, system: &str, at: f64) -> Option<f64> {
        let mut all: Vec<f64> = self.of(workload, system, at).map(|point| point.ns).collect();
        all.sort_by(f64::total_cmp);
        all.get(all.len().wrapping_sub(1) / 2).copied()
    }

    /// Returns the shortest and the longest time per operation of all rounds.
    pub(crate) fn range_ns(&self, workload: &str, system: &str, at: f64) -> Option<(f64, f64)> {
        let all = || self.of(workload, system, at).map(|point| point.ns);
        all().reduce(f64::min).zip(all().reduce(f64::max))
    }

    /// Returns each workload, system and place once, in the order of the first measurement.
    fn places(&self) -> Vec<(&'static str, &'static str, f64)> {
        let mut places: Vec<_> = Vec::new();
        for point in &self.0 {
            let place = (point.workload, point.system, point.at);
            if !places.contains(&place) {
                places.push(place);
            }
        }
        places
    }

    pub(crate) fn print(&self, out: &mut impl Write) -> io::Result<()> {
        writeln!(
            out,
            "workload       at     system             ns/op (   least     most)        ops/s  refused  wrong  blocks  fences"
        )?;
        for (workload, system, at) in self.places() {
            let turns: Vec<_> = self.of(workload, system, at).collect();
            let median = self.median_ns(workload, system, at).unwrap_or(f64::NAN);
            let least = turns.iter().map(|point| point.ns).fold(f64::INFINITY, f64::min);
            let most = turns.iter().map(|point| point.ns).fold(0.0, f64::max);
            let [refused, wrong] = [|point: &Point| point.refused, |point: &Point| point.wrong]
                .map(|of| turns.iter().copied().map(of).sum::<u64>());
            let accesses = turns.iter().find_map(|point| point.accesses);
            let [blocks, fences] = [accesses.map(|all| all.block_reads), accesses.map(|all| all.fences)]
                .map(|count| count.map_or_else(|| "–".to_owned(), |count| format!("{count:.2}")));
            writeln!(
                out,
                "{workload:<14} {at:<6} {system:<16} {median:>7.0} ({least:>8.0} {most:>8.0}) {:>12.0} {refused:>8} {wrong:>6} \
                 {blocks:>7} {fences:>7}",
                1e9 / median
            )?;
        }
        Ok(())
    }

    /// Writes one turn per line.
    pub(crate) fn write_json(&self, out: &mut impl Write) -> io::Result<()> {
        self.0.iter().try_for_each(|point| writeln!(out, "{}", serde_json::to_string(point)?))
    }

    /// Reads a line that [`Points::write_json`] wrote.
    pub(crate) fn read_one(paper: &Paper, line: &str) -> Result<Point, Error> {
        let saved: Saved = serde_json::from_str(line)?;
        let unknown = format!("paper '{}' shows no '{}' of '{}'", paper.name, saved.workload, saved.system);
        Ok(saved.of(paper).ok_or(unknown)?)
    }
}
