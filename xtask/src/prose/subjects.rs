//! Finds sentences whose subject is not a noun of the field (writer, reader, checkpointer, caller, thread).
//!
//! A hit is
//!
//! - one of the words in [`ALWAYS`], wherever the word occurs: such a word names no noun and is almost always the
//!   subject of a clause;
//! - `who` without a noun before it: at the beginning, after a full stop, colon, semicolon, bracket or dash, or after
//!   a word of [`BEFORE_WHO`]. `a writer who holds the lock`, `the caller, who knows` and `says who waits` are
//!   allowed.

use super::text::{Word, bare, paragraphs};

const ALWAYS: &[&str] = &["whoever", "somebody", "someone", "anybody", "anyone", "he", "she"];

/// Words that join clauses, prepositions, and pronouns: none is a noun.
const BEFORE_WHO: &str = "and but or nor so than as that if when while until because since where whether for to of by from with before \
     after nobody everybody everyone one those all";

/// Finds the hits in one source, each with its line.
pub(super) fn hits_of(source: &str) -> Vec<(usize, String)> {
    paragraphs(source).iter().flat_map(|paragraph| hits_in(&paragraph.words)).collect()
}

fn hits_in(words: &[Word]) -> Vec<(usize, String)> {
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

/// Returns true if a `who` after this word has no noun before it.
fn begins_clause(before: Option<&str>) -> bool {
    before.is_none_or(|word| {
        word.ends_with(['.', ':', ';', '?', '!', '–', '—'])
            || BEFORE_WHO.split(' ').any(|joining| joining == bare(word))
    })
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
            "# Who holds it",
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
