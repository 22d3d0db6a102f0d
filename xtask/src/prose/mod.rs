//! Two rules for the sentences of the documentation, so that a newcomer need not guess which thread or program acts:
//!
//! - in module heads (`//!`) and doc comments (`///`), the subject is a noun of the field ([`subjects`]);
//! - in module heads, a sentence has one pronoun at most, and in doc comments two ([`pronouns`]).
//!
//! All sources are read, tests and examples too ([`text`] says how).

mod pronouns;
mod subjects;
mod text;

use std::fs;
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// Where sources are.
const ROOTS: [&str; 3] = ["crates", "kernel", "xtask"];
/// What builds leave beside a source.
const BUILT: &str = "target";

/// A place that breaks a rule.
struct Hit {
    file: PathBuf,
    line: usize,
    words: String,
}

/// Prints all hits; whether there is none.
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
        return Err(format!("{count} subjects that are no noun of the field, or pronouns too many (xtask/src/prose)"));
    }
    println!("subjects of sentences are nouns of the field, and no sentence has more pronouns than it may");
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

/// The hits of one source, each with its line.
fn hits_of(source: &str) -> Vec<(usize, String)> {
    let mut hits = subjects::hits_of(source);
    hits.extend(pronouns::hits_of(source));
    hits.sort();
    hits
}
