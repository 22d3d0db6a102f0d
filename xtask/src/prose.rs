//! The subjects of sentences in module heads (`//!`) and doc comments (`///`): nouns of the field (writer, reader, checkpointer,
//! caller, thread), so that a newcomer need not guess which thread or program acts.
//!
//! All sources of each package are read, code blocks left out. Paragraphs, items of a list and cells of a table stand by themselves.
//! A hit is
//!
//! - one of the words in [`ALWAYS`], wherever it stands: it names no noun, and is the subject of its clause nearly always;
//! - `who` where no noun goes before it: at the beginning, after a full stop, a colon, a semicolon, a bracket or a dash, or after a
//!   word of [`BEFORE_WHO`]. `a writer who holds the lock`, `the caller, who knows`, `says who waits` are fine.

use std::fs;
use std::path::{Path, PathBuf};

use crate::failure::Failure;
use crate::house::packages;

const ALWAYS: &[&str] = &["whoever", "somebody", "someone", "anybody", "anyone", "he", "she"];

/// Words that join clauses, prepositions, and pronouns: none is a noun.
const BEFORE_WHO: &str = "and but or nor so than as that if when while until because since where whether for to of by from with before \
     after nobody everybody everyone one those all";

/// The hits of packages that have any. A number may fall, and none may come.
const MORE: &[(&str, usize)] = &[("hikv-engine-hikv", 78), ("hikv-engine-ink", 8), ("hikv-index", 63)];

/// A subject that is no noun of the field.
struct Hit {
    file: PathBuf,
    line: usize,
    word: String,
}

/// Prints the hits of all packages; whether none has more than it may.
pub(crate) fn check() -> Result<(), Failure> {
    let here = std::env::current_dir().map_err(|error| error.to_string())?;
    let mut wrong = Vec::new();
    for package in packages()? {
        let src = package.root.parent().ok_or_else(|| format!("{}: no directory", package.root.display()))?;
        let hits = hits_below(src).map_err(|error| format!("{}: {error}", src.display()))?;
        for Hit { file, line, word } in &hits {
            println!("{}:{line}: {word}", file.strip_prefix(&here).unwrap_or(file).display());
        }
        let most = MORE.iter().find(|(name, _)| *name == package.name).map_or(0, |&(_, most)| most);
        if hits.len() > most {
            wrong.push(format!(
                "{}: {} subjects are no noun of the field, of {most} at most",
                package.name,
                hits.len()
            ));
        } else if hits.len() < most {
            wrong.push(format!("{}: {} hits, not {most}: say so in xtask/src/prose.rs", package.name, hits.len()));
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

fn hits_below(dir: &Path) -> std::io::Result<Vec<Hit>> {
    let mut entries: Vec<PathBuf> =
        fs::read_dir(dir)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>()?;
    entries.sort();
    let mut hits = Vec::new();
    for path in entries {
        if path.is_dir() {
            hits.extend(hits_below(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let found = hits_of(&fs::read_to_string(&path)?);
            hits.extend(found.into_iter().map(|(line, word)| Hit { file: path.clone(), line, word }));
        }
    }
    Ok(hits)
}

/// The hits of one source, each with its line.
fn hits_of(source: &str) -> Vec<(usize, String)> {
    paragraphs(source).iter().flat_map(|words| hits_in(words)).collect()
}

fn hits_in(words: &[(usize, &str)]) -> Vec<(usize, String)> {
    let mut hits = Vec::new();
    let mut before = None;
    for &(line, word) in words {
        let bare = bare(word);
        if ALWAYS.contains(&bare.as_str()) || bare == "who" && (word.starts_with(['(', '[']) || begins_clause(before)) {
            hits.push((line, bare));
        }
        before = Some(word);
    }
    hits
}

/// Whether a `who` after this word has no noun before it.
fn begins_clause(before: Option<&str>) -> bool {
    before.is_none_or(|word| {
        word.ends_with(['.', ':', ';', '?', '!', '–', '—'])
            || BEFORE_WHO.split(' ').any(|joining| joining == bare(word))
    })
}

/// Without punctuation. What stands in backticks is a name, and no word.
fn bare(word: &str) -> String {
    word.trim_matches(|c: char| !c.is_alphanumeric() && c != '`').to_lowercase()
}

/// The words of each paragraph, list item and table cell, each with its line.
fn paragraphs(source: &str) -> Vec<Vec<(usize, &str)>> {
    let mut paragraphs = vec![Vec::new()];
    let (mut marker_before, mut is_code, mut is_heading) = (None, false, false);
    for (at, line) in source.lines().enumerate() {
        let (marker, text) = comment(line);
        if marker != marker_before {
            (marker_before, is_code) = (marker, false);
            paragraphs.push(Vec::new());
        }
        if text.starts_with("```") {
            is_code = !is_code;
        } else if !is_code {
            if text.is_empty() || begins_item(text) || is_heading {
                paragraphs.push(Vec::new());
            }
            is_heading = text.starts_with('#');
            for (nth, cell) in cells(text).enumerate() {
                if nth > 0 {
                    paragraphs.push(Vec::new());
                }
                let words = cell.split_whitespace().filter(|word| !is_marker(word));
                paragraphs.last_mut().expect("never empty").extend(words.map(|word| (at + 1, word)));
            }
        }
    }
    paragraphs
}

/// The marker of a doc comment and its text; no text where the line has none.
fn comment(line: &str) -> (Option<&'static str>, &str) {
    let line = line.trim();
    let of = |marker| line.strip_prefix(marker).map(|text| (Some(marker), text.trim()));
    of("//!").or_else(|| of("///")).unwrap_or((None, ""))
}

/// A row of a table has several; any other line is one.
fn cells(text: &str) -> impl Iterator<Item = &str> {
    let separator = if text.starts_with('|') { '|' } else { '\0' };
    text.split(separator)
}

fn begins_item(text: &str) -> bool {
    text.starts_with('#') || text.split_whitespace().next().is_some_and(is_marker)
}

/// Of a list: `-`, `*`, `1.`.
fn is_marker(word: &str) -> bool {
    let number = word.strip_suffix('.').unwrap_or_default();
    matches!(word, "-" | "*") || !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(source: &str) -> Vec<usize> {
        hits_of(source).into_iter().map(|(line, _)| line).collect()
    }

    #[test]
    fn a_subject_without_a_noun_is_found() {
        for text in [
            "Who writes holds the lock.",
            "A lock. Who writes holds it.",
            "The lock is held (who writes, holds it).",
            "A lock for who writes.",
            "It waits, and who writes does not.",
            "Nobody who reads waits.",
            "It waits until somebody writes.",
            "Then he reads.",
            "- who writes holds it",
            "2. Whoever writes holds it.",
            "| a lock | who writes |",
        ] {
            assert_eq!(lines(&format!("//! {text}\n")), [1], "{text}");
            assert_eq!(lines(&format!("    /// {text}\n")), [1], "{text}");
        }
    }

    #[test]
    fn a_noun_may_have_its_clause() {
        for text in [
            "//! A writer who holds the lock.",
            "//! The caller, who knows, says who waits.",
            "//! `who` is a name; `he` is, too.",
            "// Who writes, in a comment that is no documentation.",
            "let who = whoever(somebody);",
        ] {
            assert!(lines(text).is_empty(), "{text}");
        }
    }

    #[test]
    fn a_sentence_goes_on_in_the_next_line_and_ends_with_its_paragraph() {
        assert_eq!(lines("/// It is held by\n/// who writes.\n"), [2]);
        assert!(lines("/// The writer\n/// who writes.\n").is_empty());
        assert_eq!(lines("/// The writer\n///\n/// who writes.\n"), [3]);
        assert_eq!(lines("//! # Lock order\n//! Who writes holds it.\n"), [2]);
        assert_eq!(lines("/// The writer\nfn f() {}\n/// who writes.\n"), [3]);
    }

    #[test]
    fn code_blocks_are_left_out() {
        assert_eq!(lines("/// ```\n/// who he is\n/// ```\n/// Who writes.\n"), [4]);
    }
}
