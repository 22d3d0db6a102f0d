//! Checks two rules for sentences in the documentation, so that a newcomer need not guess which thread or program
//! acts:
//!
//! - In module heads (`//!`) and doc comments (`///`), the subject is a noun of the field ([`subjects`]).
//! - A sentence in a module head has at most one pronoun, in a doc comment at most two ([`pronouns`]).
//!
//! It reads all sources, including tests and examples ([`text`] defines sentences).

mod pronouns;
mod subjects;
mod text;

use std::fs;
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// Folders with sources.
const ROOTS: [&str; 3] = ["crates", "kernel", "xtask"];
/// The folder of build output next to a source.
const BUILT: &str = "target";

/// A place that breaks a rule.
struct Hit {
    file: PathBuf,
    line: usize,
    words: String,
}

/// Prints all hits and returns an error if there is one.
pub(crate) fn check() -> Result<(), Failure> {
    let mut count = 0;
    for root in ROOTS {
        let hits = hits_below(Path::new(root)).map_err(|error| format!("{root}: {error}"))?;
        for Hit { file, line, words } in &hits {
            println!("{}:{line}: {words}", file.display());
        }
        count += hits.len();
    }
    if count > 0 {
        return Err(format!("{count} sentences with an unclear subject or too many pronouns (rules: xtask/src/prose)"));
    }
    println!("no sentence has an unclear subject or too many pronouns");
    Ok(())
}

fn hits_below(dir: &Path) -> std::io::Result<Vec<Hit>> {
    let mut entries: Vec<PathBuf> =
        fs::read_dir(dir)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>()?;
    entries.sort();
    let mut hits = Vec::new();
    for path in entries {
        if path.ends_with(BUILT) {
            continue;
        }
        if path.is_dir() {
            hits.extend(hits_below(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let found = hits_of(&fs::read_to_string(&path)?);
            hits.extend(found.into_iter().map(|(line, words)| Hit { file: path.clone(), line, words }));
        }
    }
    Ok(hits)
}

/// Finds the hits in one source, each with its line.
fn hits_of(source: &str) -> Vec<(usize, String)> {
    let mut hits = subjects::hits_of(source);
    hits.extend(pronouns::hits_of(source));
    hits.sort();
    hits
}
