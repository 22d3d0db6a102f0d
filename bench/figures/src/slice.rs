//! `figures slice`: every system of every paper at a small size, in less than a minute. All results must be right, and
//! the exact counts those of `counts.txt`: accesses per operation, refused operations, the loads at which tables are
//! full, and bytes per pair. Nothing is timed.
//!
//! Workloads on one thread are counted. Background work that would depend on a thread's progress is done between the
//! turns, or by the writer. On several threads only the results are checked. The figures of PMEKV use stores of the
//! library, which have threads in the background: their counts may differ by [`TOLERANCE`].

use std::fmt::Write;
use std::fs;
use std::path::Path;

use crate::machine::Machine;
use crate::paper::{Paper, Shown};
use crate::point::Point;
use crate::{Error, Settings, hikv, ink, pmekv, rewo};

/// The file of the expected counts.
const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/counts.txt");
/// The relative difference that counts next to background threads may have.
const TOLERANCE: f64 = 0.1;
/// Figures that show every system and every operation between them.
const FIGURES: [(&Paper, &[&str]); 4] = [
    (&hikv::PAPER, &["1", "5", "7", "10", "12", "13", "recovery"]),
    (&rewo::PAPER, &["8a", "8b", "9", "10a", "10b"]),
    (&ink::PAPER, &["6", "8", "10"]),
    (&pmekv::PAPER, &["table-1", "table-3", "6", "our-insert", "our-b"]),
];

/// Checks everything; returns the number of wrong results.
///
/// # Errors
/// If a system failed, or the counts differ from the expected ones.
pub(crate) fn check(dir: &Path) -> Result<u64, Error> {
    let (counts, wrong) = count(dir)?;
    let expected = fs::read_to_string(PATH).map_err(|error| format!("{PATH}: {error}"))?;
    let differences = differences(&expected, &counts);
    if !differences.is_empty() {
        return Err(format!("counts differ (-: expected, +: found):\n{differences}").into());
    }
    println!("{} counts are as expected", counts.lines().count() - 1);
    Ok(wrong)
}

/// Writes the counts that [`check`] expects; returns the number of wrong results.
pub(crate) fn write(dir: &Path) -> Result<u64, Error> {
    let (counts, wrong) = count(dir)?;
    fs::write(PATH, counts)?;
    println!("{PATH}");
    Ok(wrong)
}

/// Returns the counts as text, and the number of wrong results.
fn count(dir: &Path) -> Result<(String, u64), Error> {
    let settings = Settings {
        dir: dir.to_owned(),
        segments: 8,
        systems: Vec::new(),
        pairs: 20_000,
        records: 20_000,
        few_records: 2_000,
        percent: 10,
        operations: 2_000,
        rounds: 1,
        // Reads are counted only if they are slow.
        read_block_ns: Some(1),
        persist_ns: 0,
        cache_bytes: None,
        is_counting: true,
    };
    let (machine, mut wrong) = (Machine::probe(dir)?, 0);
    let mut counts = String::from(
        "paper  workload                at       system           operations refused  blocks read  lines written  fences    bytes\n",
    );
    for (paper, figures) in FIGURES {
        let names: Vec<String> = figures.iter().map(|&name| name.to_owned()).collect();
        let figures = paper.chosen(&names)?;
        (paper.run)(&figures, &settings, &machine, &mut |point| {
            wrong += point.wrong;
            if point.wrong > 0 {
                println!("{}: {} wrong results of {} in {}", paper.name, point.wrong, point.system, point.workload);
            }
            counts += &line(paper, &point).unwrap_or_default();
        })?;
    }
    Ok((counts, wrong))
}

/// Returns the line of a point; `None` if nothing of it is counted exactly.
fn line(paper: &Paper, point: &Point) -> Option<String> {
    let Point { workload, system, at, operations, refused, .. } = point;
    let is_of_bytes =
        paper.figures.iter().any(|figure| figure.shown == Shown::Bytes && figure.workloads.contains(workload));
    let bytes = if is_of_bytes { format!("{:.1}", point.ns) } else { "-".to_owned() };
    let shown = |count: f64| format!("{count:.3}");
    let [blocks, lines, fences] = match (point.accesses, is_of_bytes) {
        (Some(all), _) => [all.block_reads, all.lines_written, all.fences].map(shown),
        (None, true) => ["-"; 3].map(str::to_owned),
        (None, false) => return None,
    };
    let at = format!("{:.3}", at).trim_end_matches('0').trim_end_matches('.').to_owned();
    let mut line = String::new();
    writeln!(
        line,
        "{:<6} {workload:<23} {at:<8} {system:<16} {operations:>10} {refused:>7} {blocks:>12} {lines:>14} {fences:>7} \
         {bytes:>8}",
        paper.name
    )
    .ok()?;
    Some(line)
}

/// Returns the lines of one text that have no equal in the other, in the order of the texts.
fn differences(expected: &str, found: &str) -> String {
    let lacking = |of: &str, other: &str, mark: &str| {
        let is_lacking = |line: &&str| !other.lines().any(|other| are_equal(line, other));
        of.lines().filter(is_lacking).map(|line| format!("{mark} {line}\n")).collect::<String>()
    };
    lacking(expected, found, "-") + &lacking(found, expected, "+")
}

/// Compares two lines: their words, or the numbers of a line that is not exact.
fn are_equal(one: &str, other: &str) -> bool {
    let is_exact = !one.starts_with(pmekv::PAPER.name);
    let are_near = |(one, other): (&str, &str)| match (one.parse::<f64>(), other.parse::<f64>()) {
        (Ok(one), Ok(other)) if !is_exact => (one - other).abs() <= 0.1_f64.max(TOLERANCE * one.abs()),
        _ => one == other,
    };
    let words = || one.split_whitespace().zip(other.split_whitespace());
    words().all(are_near) && one.split_whitespace().count() == other.split_whitespace().count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::point::Accesses;

    #[test]
    fn change_of_a_count_is_shown() {
        let point = |fences| {
            let accesses = Accesses { block_reads: 2.0, lines_written: 3.0, fences };
            line(&rewo::PAPER, &Point { accesses: Some(accesses), ..Point::of("insert", "rewo", 0.8, 0) }).unwrap()
        };
        assert_eq!(differences(&point(2.0), &point(2.0)), "");
        assert_eq!(differences(&point(2.0), &point(2.001)), format!("- {}+ {}", point(2.0), point(2.001)));
        assert!(line(&rewo::PAPER, &Point::of("insert", "rewo", 0.8, 0)).is_none());
        assert!(
            !are_equal("rewo insert 2.000", "rewo insert 2.001")
                && are_equal("pmekv insert 2.000", "pmekv insert 2.100")
        );
        assert!(
            !are_equal("pmekv insert 2.000", "pmekv insert 2.300")
                && !are_equal("pmekv insert 2.000", "pmekv put 2.000")
        );
    }
}
