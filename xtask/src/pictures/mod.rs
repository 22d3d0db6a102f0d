//! Generates the pictures in the pages and the README's table of speed.
//!
//! | generated | source |
//! |---|---|
//! | the table in `README.md`, between two marks | the table of rates in `docs/benchmarks.md` |
//! | `docs/pictures/rivals.svg` | the same table |
//! | `docs/pictures/architecture.svg` | the layers in [`layers`], whose crates must exist |
//!
//! `write` generates all three; `check` fails if one differs. So figures are written once, and an outdated picture is
//! an error.

mod layers;
mod rates;
mod svg;

use std::fs;
use std::path::Path;

use crate::failure::Failure;

const README: &str = "README.md";
const BENCHMARKS: &str = "docs/benchmarks.md";
const MARK: &str = "<!-- speed: cargo xtask pictures write -->\n";
const END: &str = "<!-- end of speed -->";

/// Writes every picture, and the table.
pub(crate) fn write() -> Result<(), Failure> {
    for (path, text) in made()? {
        fs::write(path, text).map_err(|error| format!("{path}: {error}"))?;
        println!("{path}");
    }
    Ok(())
}

/// Returns an error that names the first file that is not as [`write()`] would make it.
pub(crate) fn check() -> Result<(), Failure> {
    let made = made()?;
    match made.iter().find(|(path, text)| fs::read_to_string(path).ok().as_ref() != Some(text)) {
        Some((path, _)) => Err(format!("{path} is outdated; run cargo xtask pictures write")),
        None => {
            println!("{} generated files are up to date", made.len());
            Ok(())
        }
    }
}

/// Generates the text of each file.
fn made() -> Result<[(&'static str, String); 3], Failure> {
    let rates = rates::read(&read(BENCHMARKS)?)?;
    layers::check(&|folder| Path::new(folder).is_dir())?;
    Ok([
        (README, with_table(&read(README)?, &rates::table(&rates))?),
        ("docs/pictures/rivals.svg", rates::plot(&rates)),
        ("docs/pictures/architecture.svg", layers::drawing()),
    ])
}

fn read(path: &str) -> Result<String, Failure> {
    fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))
}

/// Returns the page with `table` between the marks.
fn with_table(page: &str, table: &str) -> Result<String, Failure> {
    let lacking = || format!("{README}: no table of speed between '{}' and '{END}'", MARK.trim_end());
    let (before, rest) = page.split_once(MARK).ok_or_else(lacking)?;
    let (_, after) = rest.split_once(END).ok_or_else(lacking)?;
    Ok(format!("{before}{MARK}\n{table}\n{END}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_is_replaced_between_marks() {
        let page = |table: &str| format!("Before\n{MARK}{table}{END}\nAfter\n");
        assert_eq!(with_table(&page("old\n"), "| new |\n").unwrap(), page("\n| new |\n\n"));
        assert!(with_table("no marks", "").unwrap_err().contains("no table of speed"));
        assert!(with_table(MARK, "").unwrap_err().contains("no table of speed"));
    }
}
