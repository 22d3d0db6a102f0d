//! The page: machine and command, and of each figure what the paper claims beside what was found, and plots.

use std::fmt::Write;

use crate::machine::Machine;
use crate::paper::{Claim, Figure, Paper};
use crate::point::Points;
use crate::{Error, plot};

const STYLE: &str = "body{font:16px/1.5 sans-serif;max-width:62rem;margin:2rem auto;padding:0 1rem}\
table{border-collapse:collapse}td,th{border:1px solid #bbb;padding:.2rem .6rem;text-align:left}\
svg{max-width:100%;height:auto}";

/// All of it. It refers to nothing outside.
pub(crate) fn page(paper: &Paper, figures: &[&Figure], machine: &Machine, points: &Points) -> Result<String, Error> {
    let mut page = String::new();
    write!(page, "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>{}</title>", escape(paper.title))?;
    write!(page, "<style>{STYLE}</style><h1>{}</h1>", escape(paper.title))?;
    write_machine(&mut page, machine)?;
    for remark in paper.remarks {
        write!(page, "<p>{}</p>", escape(remark))?;
    }
    for (system, why) in paper.not_built {
        write!(page, "<p>{} is not built: {}</p>", escape(system), escape(why))?;
    }
    for figure in figures {
        write!(page, "<h2>Figure {}: {}</h2>", escape(figure.name), escape(figure.title))?;
        write_claims(&mut page, paper, figure.claims, points)?;
        page += &plot::plots(figure, points)?;
    }
    page += "</html>\n";
    Ok(page)
}

fn write_machine(page: &mut String, machine: &Machine) -> Result<(), Error> {
    let Machine { command, processor, core_count, kernel, dependent_read_ns, persist_256_ns, .. } = machine;
    write!(
        page,
        "<p><code>{}</code></p><p>{}, {core_count} cores, Linux {}; a dependent read {dependent_read_ns:.0} ns, a persist \
         of 256 bytes by {} {persist_256_ns:.0} ns; {} s after 1970.</p>",
        escape(command),
        escape(processor),
        escape(kernel),
        machine.flush_instruction,
        machine.unix_time_s,
    )?;
    Ok(())
}

fn write_claims(page: &mut String, paper: &Paper, claims: &[Claim], points: &Points) -> Result<(), Error> {
    *page += "<table><tr><th>claim<th>printed<th>found</tr>";
    for claim in claims {
        let found = match claim.ratio.found(points) {
            Some((least, most)) => range(least, most),
            None if paper.lacks(claim) => "not built".to_owned(),
            None => "not measured".to_owned(),
        };
        write!(page, "<tr><td>{}<td>{}<td>{found}</tr>", escape(claim.text), range(claim.least, claim.most))?;
    }
    *page += "</table>";
    Ok(())
}

fn range(least: f64, most: f64) -> String {
    match () {
        () if least == most => format!("{least:.2}"),
        () if most.is_infinite() => format!("at least {least:.2}"),
        () => format!("{least:.2} to {most:.2}"),
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
