//! The measurements: points, their table, and JSON.

use std::io::{self, BufRead, Write};

use serde::{Deserialize, Serialize};

use crate::Error;
use crate::machine::Machine;
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

    /// Writes the machine, then one turn per line.
    pub(crate) fn write_json(&self, machine: &Machine, out: &mut impl Write) -> io::Result<()> {
        writeln!(out, "{}", serde_json::to_string(machine)?)?;
        self.0.iter().try_for_each(|point| writeln!(out, "{}", serde_json::to_string(point)?))
    }

    /// Reads what [`Points::write_json`] wrote.
    pub(crate) fn read_json(paper: &Paper, input: impl BufRead) -> Result<(Machine, Points), Error> {
        let mut lines = input.lines();
        let machine = serde_json::from_str(&lines.next().ok_or("the file is empty")??)?;
        let mut points = Points::default();
        for line in lines {
            let saved: Saved = serde_json::from_str(&line?)?;
            let unknown = format!("paper '{}' shows no '{}' of '{}'", paper.name, saved.workload, saved.system);
            points.add(saved.of(paper).ok_or(unknown)?);
        }
        Ok((machine, points))
    }
}
