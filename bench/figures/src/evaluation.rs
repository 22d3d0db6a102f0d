//! The evaluation: every claim of the papers with its verdict, as a page of Markdown made from saved measurements.
//!
//! A claim is a ratio. It agrees if the measured range comes within [`TOLERANCE`] of the printed one. Otherwise it has
//! the same sign if the same system is ahead, and contradicts the paper if not: then the page needs the cause.

use std::fmt::Write;
use std::fs::{self, File};
use std::io::{BufReader, ErrorKind};
use std::path::Path;

use crate::Error;
use crate::machine::Machine;
use crate::page::range;
use crate::paper::{Claim, PAPERS, Paper};
use crate::point::Points;

/// Rounds and machines differ by about this much.
const TOLERANCE: f64 = 1.15;
/// The generated part of the page lies between these lines.
const BEGIN: &str = "<!-- generated: begin -->\n";
const END: &str = "<!-- generated: end -->\n";

/// The relation of a measurement to a claim.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Verdict {
    Agrees,
    SameSign,
    Contradicts,
    NotMeasured,
}

impl Verdict {
    const ALL: [Verdict; 4] = [Verdict::Agrees, Verdict::SameSign, Verdict::Contradicts, Verdict::NotMeasured];

    fn of(claim: &Claim, found: Option<(f64, f64)>) -> Verdict {
        let Some((least, most)) = found else { return Verdict::NotMeasured };
        if most * TOLERANCE >= claim.least && least <= claim.most * TOLERANCE {
            return Verdict::Agrees;
        }
        // Of a claim without a number, the lower bound says which system is ahead.
        let printed =
            if claim.most.is_infinite() { claim.least * TOLERANCE } else { (claim.least * claim.most).sqrt() };
        let is_ahead = |ratio: f64| ratio > 1.0;
        if is_ahead((least * most).sqrt()) == is_ahead(printed) { Verdict::SameSign } else { Verdict::Contradicts }
    }

    fn name(self) -> &'static str {
        match self {
            Verdict::Agrees => "agrees",
            Verdict::SameSign => "same sign",
            Verdict::Contradicts => "contradicts",
            Verdict::NotMeasured => "not measured",
        }
    }
}

/// Replaces the generated part of the page at `page` by the verdicts on the measurements in `out`.
pub(crate) fn write(page: &Path, out: &Path) -> Result<(), Error> {
    let text = fs::read_to_string(page).map_err(|error| format!("{}: {error}", page.display()))?;
    let parts = text.split_once(BEGIN).and_then(|(head, rest)| Some((head, rest.split_once(END)?.1)));
    let (head, tail) =
        parts.ok_or_else(|| format!("{}: the lines {BEGIN:?} and {END:?} are missing", page.display()))?;
    fs::write(page, format!("{head}{BEGIN}\n{}\n{END}{tail}", generated(out)?))?;
    Ok(())
}

fn generated(out: &Path) -> Result<String, Error> {
    let (mut summary, mut tables, mut missing) = (String::new(), String::new(), Vec::new());
    summary += "| paper | agrees | same sign | contradicts | not measured |\n|---|---|---|---|---|\n";
    for paper in PAPERS {
        let path = out.join(paper.name).with_extension("json");
        let Some(file) = measurements(&path)? else {
            writeln!(summary, "| {}: no measurements yet | – | – | – | – |", paper.title)?;
            continue;
        };
        let (machine, points) =
            Points::read_json(paper, BufReader::new(file)).map_err(|error| format!("{}: {error}", path.display()))?;
        let verdicts = write_paper(&mut tables, paper, &machine, &points, &mut missing)?;
        let counts = Verdict::ALL.map(|of| verdicts.iter().filter(|verdict| **verdict == of).count().to_string());
        writeln!(summary, "| {} | {} |", paper.title, counts.join(" | "))?;
    }
    if !missing.is_empty() {
        return Err(format!("contradicted without a cause:\n{}", missing.join("\n")).into());
    }
    Ok(summary + &tables)
}

/// Opens a paper's measurements; `None` if there are none.
fn measurements(path: &Path) -> Result<Option<File>, Error> {
    match File::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        opened => Ok(Some(opened.map_err(|error| format!("{}: {error}", path.display()))?)),
    }
}

/// Writes the tables of a paper; returns the verdicts. Contradicted claims without a cause are added to `missing`.
fn write_paper(
    text: &mut String,
    paper: &Paper,
    machine: &Machine,
    points: &Points,
    missing: &mut Vec<String>,
) -> Result<Vec<Verdict>, Error> {
    write!(text, "\n## {}\n\n", paper.title)?;
    let Machine { command, processor, core_count, dependent_read_ns, load_before, .. } = machine;
    writeln!(
        text,
        "`{command}`; {processor}, {core_count} cores, a dependent read takes {dependent_read_ns:.0} ns, load {load_before:.1} \
         before the run."
    )?;
    let mut verdicts = Vec::new();
    for figure in paper.figures.iter().filter(|figure| !figure.claims.is_empty()) {
        write!(text, "\n### {}\n\n", figure.heading())?;
        *text += "| claim | printed | found | verdict |\n|---|---|---|---|\n";
        let mut causes = Vec::new();
        for claim in figure.claims {
            let found = claim.ratio.found(points);
            let verdict = Verdict::of(claim, found);
            let shown = found.map_or_else(|| "–".to_owned(), |(least, most)| range(least, most));
            writeln!(text, "| {} | {} | {shown} | {} |", claim.text, range(claim.least, claim.most), verdict.name())?;
            verdicts.push(verdict);
            if verdict == Verdict::Contradicts {
                match paper.causes.iter().find(|(text, _)| *text == claim.text) {
                    Some(cause) => causes.push(*cause),
                    None => {
                        missing.push(format!("{}, figure {}: {}, found {shown}", paper.name, figure.name, claim.text))
                    }
                }
            }
        }
        for (claim, cause) in causes {
            write!(text, "\n*{claim}*: {cause}\n")?;
        }
    }
    Ok(verdicts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paper::{Of, Ratio};

    const NONE: Of = Of { workloads: &[], systems: &[], at: &[] };

    #[test]
    fn verdict_follows_range_and_sign() {
        let claim = |least, most| Claim { text: "", least, most, ratio: Ratio { over: NONE, under: NONE } };
        let verdict = |(least, most): (f64, f64), found| Verdict::of(&claim(least, most), Some(found));
        assert_eq!(verdict((2.0, 2.0), (1.8, 1.9)), Verdict::Agrees);
        assert_eq!(verdict((2.0, 2.0), (1.1, 1.2)), Verdict::SameSign);
        assert_eq!(verdict((2.0, 2.0), (5.0, 6.0)), Verdict::SameSign);
        assert_eq!(verdict((2.0, 2.0), (0.5, 0.9)), Verdict::Contradicts);
        assert_eq!(verdict((0.5, 0.5), (1.2, 1.3)), Verdict::Contradicts);
        assert_eq!(verdict((1.0, f64::INFINITY), (7.0, 9.0)), Verdict::Agrees);
        assert_eq!(verdict((1.0, f64::INFINITY), (0.5, 0.6)), Verdict::Contradicts);
        assert_eq!(Verdict::of(&claim(1.0, 2.0), None), Verdict::NotMeasured);
    }
}
