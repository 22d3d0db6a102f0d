//! Papers as data: the figures and their claims.

use std::env;
use std::io::{self, Write};

use crate::machine::Machine;
use crate::point::{Point, Points};
use crate::{Error, Settings, hikv, ink, pmekv, rewo};

/// Receives a measurement.
pub(crate) type Report<'a> = dyn FnMut(Point) + 'a;

/// Measures figures of a paper.
pub(crate) type Run = fn(&[&'static Figure], &Settings, &Machine, &mut Report<'_>) -> Result<(), Error>;

/// A paper.
pub(crate) struct Paper {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    /// The differences between these measurements and the paper's.
    pub(crate) remarks: &'static [&'static str],
    /// Systems of the paper that this program was not built with, and the reason.
    pub(crate) not_built: &'static [(&'static str, &'static str)],
    /// External programs that some of the systems need.
    pub(crate) programs: &'static [Program],
    pub(crate) figures: &'static [Figure],
    /// Figures that a model draws, which [`Paper::predict`] computes from the measurements.
    pub(crate) modelled: &'static [Figure],
    pub(crate) predict: fn(&Points) -> Points,
    /// The remaining claims, and why they are not measured.
    pub(crate) not_measured: &'static [NotMeasured],
    /// The parts of a run of everything; an interrupted one goes on with the next part.
    pub(crate) plan: &'static [Part],
    /// The causes of measurements that contradict claims, by the claim's text.
    pub(crate) causes: &'static [(&'static str, &'static str)],
    pub(crate) run: Run,
}

/// Figures that are measured together.
pub(crate) struct Part {
    pub(crate) figures: &'static [&'static str],
    /// The time that they take on two cores, with RocksDB.
    pub(crate) seconds: u32,
}

/// A claim that is not measured.
pub(crate) struct NotMeasured {
    /// The claim, with its figure.
    pub(crate) text: &'static str,
    pub(crate) printed: &'static str,
    pub(crate) why: &'static str,
}

/// A program that must be installed to measure a system.
pub(crate) struct Program {
    pub(crate) system: &'static str,
    /// The command's name.
    pub(crate) command: &'static str,
    /// Debian's package of the program.
    pub(crate) package: &'static str,
}

impl Program {
    /// Returns true if the program is found in `PATH`.
    pub(crate) fn is_there(&self) -> bool {
        let paths = env::var_os("PATH").unwrap_or_default();
        env::split_paths(&paths).any(|dir| dir.join(self.command).is_file())
    }
}

/// A figure of a paper.
pub(crate) struct Figure {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    /// The workloads, as points name them.
    pub(crate) workloads: &'static [&'static str],
    /// The measured places on the axis.
    pub(crate) at: &'static [f64],
    /// The axis' label.
    pub(crate) axis: &'static str,
    pub(crate) systems: &'static [&'static str],
    pub(crate) shown: Shown,
    pub(crate) claims: &'static [Claim],
    /// The rows of the paper's table, if it has one.
    pub(crate) printed: &'static [Printed],
    /// A model draws the figure, and nothing was measured.
    pub(crate) is_model: bool,
}

/// A row that the paper prints.
pub(crate) struct Printed {
    pub(crate) workload: &'static str,
    pub(crate) system: &'static str,
    /// Operations per second at each place of the figure.
    pub(crate) rates: &'static [f64],
}

/// The unit of a figure's plots.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Shown {
    /// Time per operation.
    Latency,
    /// Operations per second.
    Rate,
    /// Bytes per pair.
    Bytes,
}

/// A claim of the paper: a ratio of two times, within these bounds. If the paper claims 'more' without a number, `most`
/// is infinite.
pub(crate) struct Claim {
    pub(crate) text: &'static str,
    pub(crate) least: f64,
    pub(crate) most: f64,
    pub(crate) ratio: Ratio,
}

/// The times per operation that are divided.
pub(crate) struct Ratio {
    pub(crate) over: Of,
    pub(crate) under: Of,
}

/// A set of points: every combination of these.
pub(crate) struct Of {
    pub(crate) workloads: &'static [&'static str],
    pub(crate) systems: &'static [&'static str],
    pub(crate) at: &'static [f64],
}

/// All papers.
pub(crate) const PAPERS: [&Paper; 4] = [&hikv::PAPER, &rewo::PAPER, &ink::PAPER, &pmekv::PAPER];

impl Paper {
    pub(crate) fn named(name: &str) -> Result<&'static Paper, Error> {
        let found = PAPERS.into_iter().find(|paper| paper.name == name);
        found.ok_or_else(|| format!("unknown paper '{name}'; see --list").into())
    }

    /// Returns the figures of these names; all figures if no name is given.
    pub(crate) fn chosen(&self, names: &[String]) -> Result<Vec<&'static Figure>, Error> {
        if let Some(name) = names.iter().find(|name| self.figures.iter().all(|figure| figure.name != **name)) {
            return Err(format!("paper '{}' has no figure '{name}'; see --list", self.name).into());
        }
        let is_chosen = |figure: &&Figure| names.is_empty() || names.iter().any(|name| *name == figure.name);
        Ok(self.figures.iter().filter(is_chosen).collect())
    }

    /// Fails if one of these names is not a system's.
    pub(crate) fn expect_systems(&self, names: &[String]) -> Result<(), Error> {
        let has = |name: &String| self.figures.iter().any(|figure| figure.systems.contains(&name.as_str()));
        match names.iter().find(|name| !has(name)) {
            Some(name) => Err(format!("no figure of paper '{}' shows a system '{name}'", self.name).into()),
            None => Ok(()),
        }
    }

    /// Returns the reason for each system that cannot be measured.
    pub(crate) fn absences(&self) -> Vec<String> {
        let not_built = self.not_built.iter().map(|(system, why)| format!("{system} is not built: {why}"));
        let lacking = self.programs.iter().filter(|program| !program.is_there()).map(|program| {
            let Program { system, command, package } = program;
            format!("{system} is not run: {command} is not installed (Debian package {package})")
        });
        not_built.chain(lacking).collect()
    }

    /// Returns the reason why a claim cannot be measured, if a system of it is missing.
    pub(crate) fn lack_of(&self, claim: &Claim) -> Option<String> {
        let Ratio { over, under } = &claim.ratio;
        let lack = |wanted: &&str| {
            let built = self.not_built.iter().find(|(name, _)| name == wanted);
            let run = self.programs.iter().find(|program| program.system == *wanted && !program.is_there());
            built
                .map(|(name, why)| format!("{name} is not built: {why}"))
                .or_else(|| run.map(|program| format!("{} is not installed", program.command)))
        };
        over.systems.iter().chain(under.systems).find_map(lack)
    }
}

impl Figure {
    /// Returns the heading on pages. Tables have names without a number.
    pub(crate) fn heading(&self) -> String {
        let kind = if self.name.starts_with(char::is_numeric) { "Figure " } else { "" };
        format!("{kind}{}: {}", self.name, self.title)
    }
}

impl Ratio {
    /// Returns the smallest and the greatest measured ratio. Places are paired if both sides have the same number of
    /// places; otherwise each is combined with each.
    pub(crate) fn found(&self, points: &Points) -> Option<(f64, f64)> {
        let is_paired = self.over.at.len() == self.under.at.len();
        let mut ratios = Vec::new();
        for (i, over_at) in self.over.at.iter().enumerate() {
            let under_at = if is_paired { &self.under.at[i..=i] } else { self.under.at };
            for under_at in under_at {
                ratios.extend(self.ratios(points, *over_at, *under_at));
            }
        }
        let least = ratios.iter().copied().reduce(f64::min)?;
        Some((least, ratios.into_iter().fold(least, f64::max)))
    }

    fn ratios(&self, points: &Points, over_at: f64, under_at: f64) -> Vec<f64> {
        let is_paired = self.over.workloads.len() == self.under.workloads.len();
        let mut ratios = Vec::new();
        for (i, over_workload) in self.over.workloads.iter().enumerate() {
            let under_workload = self.under.workloads[if is_paired { i } else { 0 }];
            for (over, under) in self.over.systems.iter().flat_map(|o| self.under.systems.iter().map(move |u| (o, u))) {
                let times = points.median_ns(over_workload, over, over_at).zip(points.median_ns(
                    under_workload,
                    under,
                    under_at,
                ));
                // A part of an operation that no sample hit has no ratio.
                ratios.extend(times.filter(|(_, under)| *under > 0.0).map(|(over, under)| over / under));
            }
        }
        ratios
    }
}

/// Lists the papers and their figures.
pub(crate) fn list(out: &mut impl Write) -> io::Result<()> {
    for paper in PAPERS {
        writeln!(out, "{:<8} {}", paper.name, paper.title)?;
        for figure in paper.figures {
            writeln!(out, "  {:<12} {}", figure.name, figure.title)?;
        }
    }
    Ok(())
}
