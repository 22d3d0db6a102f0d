//! The saved measurements of a paper: runs, each with its machine and command.
//!
//! The file has a line for the machine of each run, followed by a line for each of its points. A run that measures a
//! place again replaces the earlier points there; a run of which nothing is left goes.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::path::Path;

use crate::Error;
use crate::machine::Machine;
use crate::paper::{Figure, Paper};
use crate::point::Points;

/// The measurements of one run.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) machine: Machine,
    pub(crate) points: Points,
}

/// All runs, oldest first.
#[derive(Default, Debug)]
pub(crate) struct Runs(Vec<Run>);

impl Runs {
    /// Reads the runs of a paper; there are none if there is no file.
    pub(crate) fn open(paper: &Paper, path: &Path) -> Result<Runs, Error> {
        let named = |error: Error| -> Error { format!("{}: {error}", path.display()).into() };
        match File::open(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Runs::default()),
            Err(error) => Err(named(error.into())),
            Ok(file) => Runs::read(paper, BufReader::new(file)).map_err(named),
        }
    }

    /// Reads what [`Runs::write`] wrote.
    pub(crate) fn read(paper: &Paper, input: impl BufRead) -> Result<Runs, Error> {
        let mut runs = Runs::default();
        for line in input.lines() {
            let line = line?;
            if let Ok(machine) = serde_json::from_str(&line) {
                runs.0.push(Run { machine, points: Points::default() });
            } else {
                let run = runs.0.last_mut().ok_or("the first line is no machine")?;
                run.points.add(Points::read_one(paper, &line)?);
            }
        }
        Ok(runs)
    }

    /// Adds a run, whose points replace those of the same places.
    pub(crate) fn add(&mut self, run: Run) {
        self.0.iter_mut().for_each(|earlier| earlier.points.remove_places_of(&run.points));
        self.0.retain(|earlier| !earlier.points.is_empty());
        self.0.push(run);
    }

    /// Writes all runs, so that an interruption leaves either the old file or the new one.
    pub(crate) fn save(&self, path: &Path) -> Result<(), Error> {
        let new = path.with_extension("new");
        self.write(&mut File::create(&new)?)?;
        Ok(fs::rename(new, path)?)
    }

    pub(crate) fn write(&self, out: &mut impl Write) -> Result<(), Error> {
        for Run { machine, points } in &self.0 {
            writeln!(out, "{}", serde_json::to_string(machine)?)?;
            points.write_json(out)?;
        }
        Ok(())
    }

    /// Returns the points of all runs.
    pub(crate) fn points(&self) -> Points {
        self.0.iter().fold(Points::default(), |mut all, run| {
            all.add_all(&run.points);
            all
        })
    }

    /// Iterates over the runs, each with the figures that show some of its points.
    pub(crate) fn with_figures(&self, paper: &Paper) -> impl Iterator<Item = (&Run, Vec<&'static Figure>)> {
        self.0.iter().map(|run| (run, paper.figures.iter().filter(|figure| run.points.are_of(figure)).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::point::Point;

    #[test]
    fn later_run_replaces_measured_places() {
        let paper = Paper::named("rewo").unwrap();
        let dir = tempfile::tempdir().unwrap();
        let run = |command: &str, places: &[(f64, f64)]| {
            let machine = Machine { command: command.to_owned(), ..Machine::probe(dir.path()).unwrap() };
            let mut points = Points::default();
            places.iter().for_each(|&(at, ns)| points.add(Point { ns, ..Point::of("positive", "rewo", at, 0) }));
            Run { machine, points }
        };
        let mut runs = Runs::default();
        runs.add(run("first", &[(0.2, 1.0), (0.4, 2.0)]));
        runs.add(run("second", &[(0.4, 3.0)]));
        let path = dir.path().join("rewo.json");
        runs.save(&path).unwrap();
        let mut runs = Runs::open(paper, &path).unwrap();
        let ns = |runs: &Runs, at| runs.points().median_ns("positive", "rewo", at);
        assert_eq!([ns(&runs, 0.2), ns(&runs, 0.4)], [Some(1.0), Some(3.0)]);
        assert_eq!(runs.with_figures(paper).count(), 2);
        runs.add(run("third", &[(0.2, 4.0)]));
        let commands: Vec<_> = runs.with_figures(paper).map(|(run, _)| run.machine.command.as_str()).collect();
        assert_eq!((commands, ns(&runs, 0.2)), (vec!["second", "third"], Some(4.0)));
        assert!(Runs::open(paper, &dir.path().join("missing")).unwrap().points().is_empty());
        assert!(Runs::read(paper, &b"{}\n"[..]).is_err());
    }
}
