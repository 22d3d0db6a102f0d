//! The evaluation: every claim of the papers with its verdict, as a page of Markdown made from saved measurements, with
//! plots next to it.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use crate::machine::Machine;
use crate::page::range;
use crate::paper::{Figure, PAPERS, Paper};
use crate::point::Points;
use crate::runs::Runs;
use crate::verdict::Verdict;
use crate::{Error, plot};

/// The generated part of the page lies between these lines.
const BEGIN: &str = "<!-- generated: begin -->\n";
const END: &str = "<!-- generated: end -->\n";
/// The directory of the plots, next to the page.
const PICTURES: &str = "pictures";

/// The reason why a model predicts nothing.
const NO_SERVICES: &str = "too few cores, and the model's service times are not in these runs";

/// A page in the making.
#[derive(Default)]
struct Evaluation {
    tables: String,
    /// Contradicted claims without a cause.
    missing: Vec<String>,
    /// The plots: file name and content.
    pictures: Vec<(String, String)>,
}

/// Replaces the generated part of a page by the verdicts on the measurements in `out`, and writes the plots.
pub(crate) fn write(page: &Path, out: &Path) -> Result<(), Error> {
    let text = fs::read_to_string(page).map_err(|error| format!("{}: {error}", page.display()))?;
    let parts = text.split_once(BEGIN).and_then(|(head, rest)| Some((head, rest.split_once(END)?.1)));
    let (head, tail) =
        parts.ok_or_else(|| format!("{}: the lines {BEGIN:?} and {END:?} are missing", page.display()))?;
    let mut evaluation = Evaluation::default();
    let summary = evaluation.add_all(out)?;
    if !evaluation.missing.is_empty() {
        return Err(format!("contradicted without a cause:\n{}", evaluation.missing.join("\n")).into());
    }
    fs::write(page, format!("{head}{BEGIN}\n{summary}{}\n{END}{tail}", evaluation.tables))?;
    let dir = page.parent().unwrap_or(Path::new("")).join(PICTURES);
    fs::create_dir_all(&dir)?;
    for (name, svg) in evaluation.pictures {
        fs::write(dir.join(name), svg)?;
    }
    Ok(())
}

impl Evaluation {
    /// Adds every paper; returns the table that counts the verdicts.
    fn add_all(&mut self, out: &Path) -> Result<String, Error> {
        let mut summary = String::from("| paper |");
        let columns = || Verdict::ALL.into_iter().map(Some).chain([None]);
        columns().for_each(|verdict| summary += &format!(" {} |", verdict.map_or("model", Verdict::name)));
        summary += &format!("\n|---|{}\n", "---|".repeat(columns().count()));
        for paper in PAPERS {
            let runs = Runs::open(paper, &out.join(paper.name).with_extension("json"))?;
            if runs.points().is_empty() {
                writeln!(summary, "| {}: no measurements yet |{}", paper.title, " – |".repeat(columns().count()))?;
                continue;
            }
            let verdicts = self.add_paper(paper, &runs)?;
            let count = |of: Option<Verdict>| verdicts.iter().filter(|verdict| **verdict == of).count();
            let counts: String = columns().map(|of| format!(" {} |", count(of))).collect();
            writeln!(summary, "| {} |{counts}", paper.title)?;
        }
        Ok(summary)
    }

    /// Adds a paper; returns its verdicts, and nothing for each claim of the model.
    fn add_paper(&mut self, paper: &Paper, runs: &Runs) -> Result<Vec<Option<Verdict>>, Error> {
        write!(self.tables, "\n## {}\n\n", paper.title)?;
        self.add_runs(paper, runs)?;
        let (points, mut verdicts) = (runs.points(), Vec::new());
        for figure in paper.figures.iter().filter(|figure| !figure.claims.is_empty() || points.are_of(figure)) {
            write!(self.tables, "\n### {}\n", figure.heading())?;
            verdicts.extend(self.add_claims(paper, figure, &points)?.into_iter().map(Some));
            self.add_plot(&format!("{}-{}", paper.name, figure.name), figure, &points)?;
        }
        let predicted = (paper.predict)(&points);
        for figure in paper.modelled.iter().filter(|figure| predicted.are_of(figure)) {
            write!(self.tables, "\n### {}, by a model\n", figure.heading())?;
            verdicts.extend(self.add_prediction(figure, &points, &predicted)?);
            self.add_plot(&format!("{}-{}-model", paper.name, figure.name), figure, &predicted)?;
        }
        let unmodelled: Vec<&Figure> = paper.modelled.iter().filter(|figure| !predicted.are_of(figure)).collect();
        if !paper.not_measured.is_empty() {
            self.tables += "\n### Claims that are not measured\n\n| claim | printed | reason |\n|---|---|---|\n";
            for (figure, claim) in
                unmodelled.iter().flat_map(|figure| figure.claims.iter().map(move |claim| (figure, claim)))
            {
                let printed = range(claim.least, claim.most);
                writeln!(self.tables, "| figure {}: {} | {printed} | {NO_SERVICES} |", figure.name, claim.text)?;
                verdicts.push(Some(Verdict::NotMeasured));
            }
            for claim in paper.not_measured {
                writeln!(self.tables, "| {} | {} | {} |", claim.text, claim.printed, claim.why)?;
                verdicts.push(Some(Verdict::NotMeasured));
            }
        }
        Ok(verdicts)
    }

    /// Adds the machine and, for each run, its command and figures.
    fn add_runs(&mut self, paper: &Paper, runs: &Runs) -> Result<(), Error> {
        let mut machine = String::new();
        for (run, figures) in runs.with_figures(paper) {
            let Machine { commit, processor, core_count, dependent_read_ns, load_before, .. } = &run.machine;
            let this = format!("{processor}, {core_count} cores; a dependent read takes {dependent_read_ns:.0} ns");
            if this != machine {
                writeln!(self.tables, "{this}.\n\n| command | commit | load before | figures |\n|---|---|---|---|")?;
                machine = this;
            }
            let commit = if commit.is_empty() { "not recorded" } else { commit };
            let figures: Vec<_> = figures.iter().map(|figure| figure.name).collect();
            let command = run.machine.shown_command();
            writeln!(self.tables, "| `{command}` | {commit} | {load_before:.1} | {} |", figures.join(", "))?;
        }
        Ok(())
    }

    /// Adds the claims about a figure; returns their verdicts.
    fn add_claims(&mut self, paper: &Paper, figure: &Figure, points: &Points) -> Result<Vec<Verdict>, Error> {
        let (mut verdicts, mut uncovered) = (Vec::new(), Vec::new());
        let mut causes = Vec::<(&str, Vec<&str>)>::new();
        if !figure.claims.is_empty() {
            self.tables += "\n| claim | printed | found | verdict |\n|---|---|---|---|\n";
        }
        for claim in figure.claims {
            let found = claim.ratio.found(points);
            let verdict = Verdict::of(claim, found);
            let shown = found.map_or_else(|| "–".to_owned(), |(least, most)| range(least, most));
            let printed = range(claim.least, claim.most);
            let lack = paper.lack_of(claim).filter(|_| verdict == Verdict::NotMeasured);
            let (text, name) = (claim.text, verdict.name());
            match (verdict, lack) {
                (Verdict::NotMeasured, None) => uncovered.push(text),
                (_, lack) => {
                    let why = lack.map_or_else(String::new, |lack| format!(": {lack}"));
                    writeln!(self.tables, "| {text} | {printed} | {shown} | {name}{why} |")?;
                }
            }
            verdicts.push(verdict);
            if !verdict.needs_cause() {
                continue;
            }
            match paper.causes.iter().find(|(of, _)| *of == text) {
                None => self.missing.push(format!("{}, figure {}: {text}, found {shown}", paper.name, figure.name)),
                Some(&(_, cause)) => match causes.iter_mut().find(|(known, _)| *known == cause) {
                    Some((_, claims)) => claims.push(text),
                    None => causes.push((cause, vec![text])),
                },
            }
        }
        if !uncovered.is_empty() {
            write!(self.tables, "\nThe runs above do not cover: {}.\n", uncovered.join("; "))?;
        }
        for (cause, claims) in causes {
            let claims: Vec<_> = claims.into_iter().map(|text| format!("*{text}*")).collect();
            write!(self.tables, "\n{}: {cause}\n", claims.join("; "))?;
        }
        Ok(verdicts)
    }

    /// Adds the predictions of a figure: on two threads next to the measurement, and the claims.
    fn add_prediction(
        &mut self,
        figure: &Figure,
        points: &Points,
        predicted: &Points,
    ) -> Result<Vec<Option<Verdict>>, Error> {
        let (first, ns) =
            (figure.at[0], |points: &Points, workload, system, at| points.median_ns(workload, system, at));
        write!(self.tables, "\n| K ops/s at {first} {}: measured / model |", figure.axis)?;
        figure.systems.iter().for_each(|system| self.tables += &format!(" {system} |"));
        self.tables += &format!("\n|---|{}\n", "---|".repeat(figure.systems.len()));
        for workload in figure.workloads {
            write!(self.tables, "| {workload} |")?;
            for system in figure.systems {
                let [measured, model] = [points, predicted].map(|of| {
                    ns(of, workload, system, first).map_or_else(|| "–".to_owned(), |ns| format!("{:.0}", 1e6 / ns))
                });
                write!(self.tables, " {measured} / {model} |")?;
            }
            self.tables += "\n";
        }
        self.tables += "\n| claim | printed | model |\n|---|---|---|\n";
        for claim in figure.claims {
            let shown = claim.ratio.found(predicted).map_or_else(|| "–".to_owned(), |(least, most)| range(least, most));
            writeln!(self.tables, "| {} | {} | {shown} |", claim.text, range(claim.least, claim.most))?;
        }
        Ok(vec![None; figure.claims.len()])
    }

    fn add_plot(&mut self, name: &str, figure: &Figure, points: &Points) -> Result<(), Error> {
        let plot = plot::all_in_one(figure, points)?;
        if let Some(svg) = plot {
            write!(self.tables, "\n![{}]({PICTURES}/{name}.svg)\n", figure.heading())?;
            self.pictures.push((format!("{name}.svg"), svg));
        }
        Ok(())
    }
}
