//! The turns: the loading of each system, and the order in which the systems work.

use std::fs;
use std::io::ErrorKind;
use std::time::{Duration, Instant};

use bench::{Config, Records, Row, Session, Subject};

use crate::cell::{Cell, Level};
use crate::counters::Counters;
use crate::error::Error;
use crate::place::Place;
use crate::report::{Measurement, Report};
use crate::system::{Measure, Memory, Opening, System};

/// The file's presence shows that the adjacent store is loaded; its contents describe the records.
const LOADED_NAME: &str = "loaded";

/// A comparison in progress.
pub(crate) struct Comparison {
    pub(crate) place: Place,
    pub(crate) records: Records,
    pub(crate) pass: Duration,
    pub(crate) memory: Option<Memory>,
    pub(crate) report: Report,
}

impl Comparison {
    /// Loads every system that is not yet loaded with these records.
    pub(crate) fn load(&self, systems: &[System]) -> Result<(), Error> {
        systems.iter().try_for_each(|&system| self.load_one(system).map_err(|error| at(system, "loading", &*error)))
    }

    fn load_one(&self, system: System) -> Result<(), Error> {
        let directory = self.place.of(system);
        let loaded = directory.join(LOADED_NAME);
        let with = format!("{:?}", self.records);
        if fs::read_to_string(&loaded).is_ok_and(|found| found == with) {
            return Ok(());
        }
        match fs::remove_dir_all(&directory) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error.into()),
            _ => fs::create_dir_all(&directory)?,
        }
        let start = Instant::now();
        let opening =
            Opening { directory: &directory, level: Level::Buffered, records: self.records, is_ordered: false, memory: None };
        system.open(&opening, Load { config: self.config(1, 0) })?;
        fs::write(&loaded, with)?;
        self.report.note(&format!("{system}: loaded {} items in {:.1?}", self.records.count, start.elapsed()))
    }

    /// Runs every system's turn at `cell`.
    pub(crate) fn round(&mut self, round: u32, cell: Cell, systems: &[System]) -> Result<(), Error> {
        let first = round as usize % systems.len().max(1);
        let (behind, before) = systems.split_at(first);
        for &system in before.iter().chain(behind).filter(|system| system.has(cell)) {
            let measured = self.turn(round, cell, system).map_err(|error| at(system, "measuring", &*error))?;
            self.report.add(measured)?;
        }
        Ok(())
    }

    fn turn(&self, round: u32, cell: Cell, system: System) -> Result<Measurement, Error> {
        let config = self.config(usize::from(cell.threads.get()), round);
        let (directory, device) = (self.place.of(system), self.place.device);
        let (level, is_ordered) = (cell.level, cell.workload.is_ordered());
        let opening = Opening { directory: &directory, level, records: self.records, is_ordered, memory: self.memory };
        let (row, [before, paced]) = system.open(&opening, Work { config, cell, device })?;
        let until_closed = Counters::now(device)? - before;
        Ok(Measurement::new(system, cell, round, self.records, row, paced - before, until_closed))
    }

    fn config(&self, threads: usize, round: u32) -> Config {
        let (records, pass) = (self.records, self.pass);
        Config { workloads: Vec::new(), records, pass, threads, plan: None, keeps_order: false, seed: u64::from(round) }
    }
}

struct Load {
    config: Config,
}

impl Measure for Load {
    type Found = ();

    fn measure(self, subject: &impl Subject) -> Result<(), Error> {
        Session::new(subject, &self.config, &|| false)?.load().map(drop)
    }
}

struct Work {
    config: Config,
    cell: Cell,
    device: (u32, u32),
}

impl Measure for Work {
    /// The figures, and the operating system's counters before and after the throughput pass.
    type Found = (Row, [Counters; 2]);

    fn measure(self, subject: &impl Subject) -> Result<Self::Found, Error> {
        let mut counted = Vec::new();
        let mut count = || counted.push(Counters::now(self.device));
        let row = Session::new(subject, &self.config, &|| false)?.measure(self.cell.workload, &mut count)?;
        let mut counted = counted.into_iter();
        let mut next = || counted.next().ok_or("a pass did not run")?;
        Ok((row.ok_or("nothing was measured")?, [next()?, next()?]))
    }
}

fn at(system: System, doing: &str, error: &(dyn std::error::Error + Send + Sync)) -> Error {
    format!("{doing} {system}: {error}").into()
}
