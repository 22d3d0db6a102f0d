//! The turns: which system loads, and which works when.

use std::fs;
use std::io::ErrorKind;
use std::time::{Duration, Instant};

use crate::cell::{Cell, Level};
use crate::counters::Counters;
use crate::error::Error;
use crate::pass::pass;
use crate::place::Place;
use crate::report::{Measurement, Report};
use crate::shape::Shape;
use crate::system::System;

/// Its presence says that the store beside it is loaded, its contents with what.
const LOADED_NAME: &str = "loaded";

/// A comparison in the making.
pub(crate) struct Comparison {
    pub(crate) place: Place,
    pub(crate) shape: Shape,
    pub(crate) turn: Duration,
    pub(crate) report: Report,
}

impl Comparison {
    /// Loads every system that is not loaded with such records yet.
    pub(crate) fn load(&self, systems: &[System]) -> Result<(), Error> {
        systems.iter().try_for_each(|&system| self.load_one(system).map_err(|error| at(system, "loading", &*error)))
    }

    fn load_one(&self, system: System) -> Result<(), Error> {
        let directory = self.place.of(system);
        let loaded = directory.join(LOADED_NAME);
        let with = format!("{:?}", self.shape);
        if fs::read_to_string(&loaded).is_ok_and(|found| found == with) {
            return Ok(());
        }
        match fs::remove_dir_all(&directory) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error.into()),
            _ => fs::create_dir_all(&directory)?,
        }
        let start = Instant::now();
        let store = system.open(&directory, Level::Buffered, self.shape)?;
        store.load(self.shape)?;
        store.close()?;
        fs::write(&loaded, with)?;
        self.report.note(&format!("{system}: loaded {} items in {:.1?}", self.shape.records, start.elapsed()))
    }

    /// Every system's turn at `cell`.
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
        let store = system.open(&self.place.of(system), cell.level, self.shape)?;
        let before = Counters::now(self.place.device)?;
        let pace = pass(&*store, self.shape, cell, self.turn, u64::from(round))?;
        let working = Counters::now(self.place.device)? - before;
        store.close()?;
        let until_closed = Counters::now(self.place.device)? - before;
        Ok(Measurement::new(system, cell, round, self.shape, &pace, working, until_closed))
    }
}

fn at(system: System, doing: &str, error: &(dyn std::error::Error + Send + Sync)) -> Error {
    format!("{doing} {system}: {error}").into()
}
