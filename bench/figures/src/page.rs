//! The HTML page: machine and command, and for each figure the paper's claims next to the measurements, and plots.

use std::fmt::Write;

use crate::machine::Machine;
use crate::paper::{Claim, Figure, Paper};
use crate::point::Points;
use crate::runs::Runs;
use crate::{Error, plot};

const STYLE: &str = "body{font:16px/1.5 sans-serif;max-width:62rem;margin:2rem auto;padding:0 1rem}\
table{border-collapse:collapse}td,th{border:1px solid #bbb;padding:.2rem .6rem;text-align:left}\
svg{max-width:100%;height:auto}";

/// Returns the page of all figures of which something was measured. It refers to nothing outside of it.
pub(crate) fn page(paper: &Paper, runs: &Runs) -> Result<String, Error> {
    let (mut page, points) = (String::new(), &runs.points());
    write!(page, "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>{}</title>", escape(paper.title))?;
    write!(page, "<style>{STYLE}</style><h1>{}</h1>", escape(paper.title))?;
    for (run, _) in runs.with_figures(paper) {
        write_machine(&mut page, &run.machine)?;
    }
    for remark in paper.remarks {
        write!(page, "<p>{}</p>", escape(remark))?;
    }
    for why in paper.absences() {
        write!(page, "<p>{}</p>", escape(&why))?;
    }
    for figure in paper.figures.iter().filter(|figure| points.are_of(figure)) {
        write!(page, "<h2>{}</h2>", escape(&figure.heading()))?;
        write_claims(&mut page, paper, figure.claims, points)?;
        for workload in figure.workloads {
            write_printed(&mut page, figure, workload, points)?;
        }
        page += &plot::plots(figure, points)?;
    }
    page += "</html>\n";
    Ok(page)
}

fn write_machine(page: &mut String, machine: &Machine) -> Result<(), Error> {
    let Machine { command, commit, processor, core_count, kernel, dependent_read_ns, persist_256_ns, .. } = machine;
    write!(
        page,
        "<p><code>{}</code>, commit {}</p><p>{}, {core_count} cores, Linux {}; a dependent read takes \
         {dependent_read_ns:.0} ns, a persist of 256 bytes with {} {persist_256_ns:.0} ns; load before the run {:.1}; Unix \
         time {}.</p>",
        escape(command),
        if commit.is_empty() { "unknown" } else { commit },
        escape(processor),
        escape(kernel),
        machine.flush_instruction,
        machine.load_before,
        machine.unix_time_s,
    )?;
    Ok(())
}

fn write_claims(page: &mut String, paper: &Paper, claims: &[Claim], points: &Points) -> Result<(), Error> {
    if claims.is_empty() {
        return Ok(());
    }
    *page += "<table><tr><th>claim<th>printed<th>measured</tr>";
    for claim in claims {
        let found = match claim.ratio.found(points) {
            Some((least, most)) => range(least, most),
            None if paper.lack_of(claim).is_some() => "not available".to_owned(),
            None => "not measured".to_owned(),
        };
        write!(page, "<tr><td>{}<td>{}<td>{found}</tr>", escape(claim.text), range(claim.least, claim.most))?;
    }
    *page += "</table>";
    Ok(())
}

/// Writes the paper's table of a workload, with measured values next to the printed ones.
fn write_printed(page: &mut String, figure: &Figure, workload: &str, points: &Points) -> Result<(), Error> {
    let printed = || figure.printed.iter().filter(|row| row.workload == workload);
    if printed().next().is_none() {
        return Ok(());
    }
    write!(page, "<table><tr><th>{}: operations per second, printed / measured", escape(workload))?;
    for at in figure.at {
        write!(page, "<th>{at} {}", escape(figure.axis))?;
    }
    *page += "</tr>";
    let ours = figure.systems.iter().copied().filter(|system| printed().all(|row| row.system != *system));
    for system in printed().map(|row| row.system).chain(ours) {
        write!(page, "<tr><td>{}", escape(system))?;
        for (number, at) in figure.at.iter().enumerate() {
            let printed = printed().find(|row| row.system == system).map(|row| row.rates[number]);
            let found = points.median_ns(workload, system, *at).map(|ns| 1e9 / ns);
            let [printed, found] =
                [printed, found].map(|rate| rate.map_or_else(|| "–".to_owned(), |rate| format!("{rate:.0}")));
            write!(page, "<td>{printed} / {found}")?;
        }
        *page += "</tr>";
    }
    *page += "</table>";
    Ok(())
}

/// Returns a range as one number if its ends are shown alike.
pub(crate) fn range(least: f64, most: f64) -> String {
    match () {
        () if most.is_infinite() => format!("at least {least:.2}"),
        () if most / least < 1.005 => format!("{least:.2}"),
        () => format!("{least:.2} to {most:.2}"),
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
