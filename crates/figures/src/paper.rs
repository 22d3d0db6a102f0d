//! Papers as data: the figures, and what they claim.

use std::env;
use std::io::{self, Write};

use crate::machine::Machine;
use crate::point::{Point, Points};
use crate::{Error, Settings, ink, pmekv, rewo};

/// Tells what was measured.
pub(crate) type Report<'a> = dyn FnMut(Point) + 'a;

/// Measures figures of a paper.
pub(crate) type Run = fn(&[&'static Figure], &Settings, &Machine, &mut Report<'_>) -> Result<(), Error>;

/// A paper.
pub(crate) struct Paper {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    /// How what is measured here differs from what was printed.
    pub(crate) remarks: &'static [&'static str],
    /// Systems that it compares with and that this program was not built with, and why.
    pub(crate) not_built: &'static [(&'static str, &'static str)],
    /// Programs of others that some of its systems are.
    pub(crate) programs: &'static [Program],
    pub(crate) figures: &'static [Figure],
    pub(crate) run: Run,
}

/// A program that has to be installed for a system to be measured.
pub(crate) struct Program {
    pub(crate) system: &'static str,
    /// What it is called.
    pub(crate) command: &'static str,
    /// Debian's package of it.
    pub(crate) package: &'static str,
}

impl Program {
    /// Whether it is where programs are looked for.
    pub(crate) fn is_there(&self) -> bool {
        let paths = env::var_os("PATH").unwrap_or_default();
        env::split_paths(&paths).any(|dir| dir.join(self.command).is_file())
    }
}

/// A figure of it.
pub(crate) struct Figure {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    /// Its workloads, as points name them.
    pub(crate) workloads: &'static [&'static str],
    /// Where along its axis they are measured.
    pub(crate) at: &'static [f64],
    /// What the axis is.
    pub(crate) axis: &'static str,
    pub(crate) systems: &'static [&'static str],
    pub(crate) shown: Shown,
    pub(crate) claims: &'static [Claim],
    /// What the paper has a table of.
    pub(crate) printed: &'static [Printed],
}

/// A printed row.
pub(crate) struct Printed {
    pub(crate) workload: &'static str,
    pub(crate) system: &'static str,
    /// Operations a second, at each place of the figure.
    pub(crate) rates: &'static [f64],
}

/// How a figure shows its points.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Shown {
    /// Time of an operation.
    Latency,
    /// Operations a second.
    Rate,
}

/// What is printed of it: how many times as long something takes as another. Where it says 'more' and no number, `most` is
/// infinite.
pub(crate) struct Claim {
    pub(crate) text: &'static str,
    pub(crate) least: f64,
    pub(crate) most: f64,
    pub(crate) ratio: Ratio,
}

/// Times of an operation that are divided.
pub(crate) struct Ratio {
    pub(crate) over: Of,
    pub(crate) under: Of,
}

/// Some of the points: every combination of these.
pub(crate) struct Of {
    pub(crate) workloads: &'static [&'static str],
    pub(crate) systems: &'static [&'static str],
    pub(crate) at: &'static [f64],
}

/// All papers.
const PAPERS: [&Paper; 3] = [&rewo::PAPER, &ink::PAPER, &pmekv::PAPER];

impl Paper {
    pub(crate) fn named(name: &str) -> Result<&'static Paper, Error> {
        let found = PAPERS.into_iter().find(|paper| paper.name == name);
        found.ok_or_else(|| format!("there is no paper '{name}': see --list").into())
    }

    /// The figures of these names; all, if none is named.
    pub(crate) fn chosen(&self, names: &[String]) -> Result<Vec<&'static Figure>, Error> {
        if let Some(name) = names.iter().find(|name| self.figures.iter().all(|figure| figure.name != **name)) {
            return Err(format!("{} has no figure '{name}': see --list", self.name).into());
        }
        let is_chosen = |figure: &&Figure| names.is_empty() || names.iter().any(|name| *name == figure.name);
        Ok(self.figures.iter().filter(is_chosen).collect())
    }

    /// An error if one of these names is no system's.
    pub(crate) fn expect_systems(&self, names: &[String]) -> Result<(), Error> {
        let has = |name: &String| self.figures.iter().any(|figure| figure.systems.contains(&name.as_str()));
        match names.iter().find(|name| !has(name)) {
            Some(name) => Err(format!("{} is measured with no system '{name}'", self.name).into()),
            None => Ok(()),
        }
    }

    /// Of each system that cannot be measured why that is so.
    pub(crate) fn absences(&self) -> Vec<String> {
        let not_built = self.not_built.iter().map(|(system, why)| format!("{system} is not built: {why}"));
        let lacking = self.programs.iter().filter(|program| !program.is_there()).map(|program| {
            let Program { system, command, package } = program;
            format!("{system} is not run: there is no {command} (Debian's package {package})")
        });
        not_built.chain(lacking).collect()
    }

    /// Whether a claim is of a system that cannot be measured.
    pub(crate) fn lacks(&self, claim: &Claim) -> bool {
        let Ratio { over, under } = &claim.ratio;
        let is_absent = |wanted: &&str| {
            self.not_built.iter().any(|(name, _)| name == wanted)
                || self.programs.iter().any(|program| program.system == *wanted && !program.is_there())
        };
        over.systems.iter().chain(under.systems).any(is_absent)
    }
}

impl Ratio {
    /// The least and the most of what was measured, place by place where both have as many, else each with each.
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
                ratios.extend(times.map(|(over, under)| over / under));
            }
        }
        ratios
    }
}

/// What there is.
pub(crate) fn list(out: &mut impl Write) -> io::Result<()> {
    for paper in PAPERS {
        writeln!(out, "{:<8} {}", paper.name, paper.title)?;
        for figure in paper.figures {
            writeln!(out, "  {:<12} {}", figure.name, figure.title)?;
        }
    }
    Ok(())
}
