//! `docs/testing/mutants.md`: a row for each mutant, kept from run to run, also when its line moves to another file.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::sites::{Kind, Site};
use crate::failure::Failure;

const HEAD: &str = "# Mutants

A mutant is a copy of the program that omits one step, such as a fence, a lock or a repeated check; this page lists
each mutant and the test that detects it. It is for contributors who change a protocol, and for readers who judge how
much the tests see.

The steps are calls that order, flush, sync, settle, publish, seal or retire, locks, and conditions that check again
for concurrent changes. `cargo xtask mutants` finds such lines in the source, builds all mutants at once in a copy of
it (`xtask/src/mutants/`; the shipped source has no switches), runs the tests on each mutant for at most three
minutes, and writes this page. An interrupted run can be continued.

| command | effect |
|---|---|
| `cargo xtask mutants` | runs every mutant that has no outcome yet |
| `cargo xtask mutants quick` | runs only tests that take seconds; the others are left to a later run |
| `cargo xtask mutants FOLDER COUNT` | runs at most COUNT mutants of a folder (`heap`, `crates/heap`), or of a file |
| `cargo xtask mutants list` | prints the number of each mutant |

An outcome is kept while its line stays the same, in its file or in another file of its crate. Text that was added by
hand after `missed` is kept as well. `equivalent`, followed by a reason, is also written by hand: omitting the step
has no observable effect, so such a mutant is not run.

";

/// The rows.
pub(super) struct Table {
    file: PathBuf,
    /// In the order of the source.
    names: Vec<(String, Kind)>,
    outcomes: BTreeMap<String, String>,
}

impl Table {
    /// Reads the outcomes of these sites from the page.
    pub(super) fn read(file: &Path, sites: &[Site]) -> Result<Table, Failure> {
        let names: Vec<_> = sites.iter().map(|site| (site.name(), site.kind)).collect();
        let text = fs::read_to_string(file).unwrap_or_default();
        let rows = text.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |"));
        let cells = rows.filter_map(|row| match row.split(" | ").collect::<Vec<_>>()[..] {
            [name, _, outcome] => Some((name.to_owned(), outcome.to_owned())),
            _ => None,
        });
        let outcomes = kept(cells.filter(|(_, outcome)| outcome != "not run").collect(), &names);
        Ok(Table { file: file.to_owned(), names, outcomes })
    }

    pub(super) fn outcome(&self, site: &Site) -> Option<&str> {
        self.outcomes.get(&site.name()).map(String::as_str)
    }

    pub(super) fn enter(&mut self, site: &Site, outcome: String) {
        self.outcomes.insert(site.name(), outcome);
    }

    pub(super) fn summary(&self) -> String {
        let count = |beginning: &str| self.outcomes.values().filter(|outcome| outcome.starts_with(beginning)).count();
        let (all, caught, missed, same) = (self.names.len(), count("caught"), count("missed"), count("equivalent"));
        let rest = all - caught - missed - same;
        format!("{all} mutants: {caught} caught, {missed} missed, {same} equivalent, {rest} not run")
    }

    pub(super) fn write(&self) -> Result<(), Failure> {
        let mut text = format!("{HEAD}{}.\n\n| step | mutant | outcome |\n|---|---|---|\n", self.summary());
        for (name, kind) in &self.names {
            let kind = match kind {
                Kind::LeftOut => "left out",
                Kind::NotLocked => "not locked",
                Kind::NotLookedAt => "never so",
            };
            let outcome = self.outcomes.get(name).map_or("not run", String::as_str);
            text += &format!("| {name} | {kind} | {outcome} |\n");
        }
        fs::write(&self.file, text).map_err(|error| format!("{}: {error}", self.file.display()))
    }
}

/// Keeps the outcomes of mutants that still exist. If a crate lost as many rows of a line as it gained, the rows
/// moved to other files and keep their outcomes.
fn kept(rows: BTreeMap<String, String>, names: &[(String, Kind)]) -> BTreeMap<String, String> {
    let is_there = |name: &String| names.iter().any(|(known, _)| known == name);
    let (mut outcomes, gone): (BTreeMap<_, _>, BTreeMap<_, _>) = rows.into_iter().partition(|(name, _)| is_there(name));
    let new = names.iter().map(|(name, _)| name).filter(|name| !outcomes.contains_key(*name));
    let (new, mut gone) = (by_line(new.cloned().map(|name| (name, ()))), by_line(gone));
    for (line, places) in new {
        let moved = gone.remove(&line).filter(|moved| moved.len() == places.len()).unwrap_or_default();
        outcomes.extend(places.into_iter().zip(moved).map(|((name, ()), (_, outcome))| (name, outcome)));
    }
    outcomes
}

/// Groups items by the line and crate in their name, which has the form of `Site::name`.
fn by_line<T>(of_names: impl IntoIterator<Item = (String, T)>) -> BTreeMap<(String, String), Vec<(String, T)>> {
    let mut lines: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for (name, it) in of_names {
        let package = name.split("/src/").next().unwrap_or_default().to_owned();
        let line = name.split('`').nth(1).unwrap_or_default().to_owned();
        lines.entry((package, line)).or_default().push((name, it));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcome_needs_its_line() {
        let row = |name: &str, outcome: &str| (name.to_owned(), outcome.to_owned());
        let rows = BTreeMap::from([
            row("crates/a/src/old.rs `x.order();`", "caught by one"),
            row("crates/a/src/old.rs `x.order();` (2)", "caught by two"),
            row("crates/a/src/old.rs `y.order();`", "missed"),
            row("crates/a/src/stays.rs `x.order();`", "caught"),
            row("crates/b/src/old.rs `z.order();`", "missed"),
        ]);
        let names = [
            "crates/a/src/new.rs `x.order();`",
            "crates/a/src/new.rs `y.order();`",
            "crates/a/src/new.rs `y.order();` (2)",
            "crates/a/src/newer.rs `x.order();`",
            "crates/a/src/new.rs `z.order();`",
            "crates/a/src/stays.rs `x.order();`",
        ];
        let names = names.map(|name| (name.to_owned(), Kind::LeftOut));
        let expected = BTreeMap::from([
            row("crates/a/src/new.rs `x.order();`", "caught by one"),
            row("crates/a/src/newer.rs `x.order();`", "caught by two"),
            row("crates/a/src/stays.rs `x.order();`", "caught"),
        ]);
        assert_eq!(kept(rows, &names), expected);
    }
}
