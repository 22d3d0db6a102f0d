//! Extracts the documentation of a source. Code blocks are skipped; paragraphs, list items and table cells are
//! separate.
//!
//! A sentence ends at a full stop, a question or exclamation mark, a colon or a semicolon, which a bracket or a
//! quotation mark may follow, or at the end of the paragraph. Text in backticks is a name and ends no sentence.

/// A word and its line.
pub(super) type Word<'a> = (usize, &'a str);

/// A paragraph, list item or cell.
#[derive(Default)]
pub(super) struct Paragraph<'a> {
    /// True in a module's head.
    pub(super) is_head: bool,
    pub(super) words: Vec<Word<'a>>,
}

/// Lists the paragraphs of a source's documentation.
pub(super) fn paragraphs(source: &str) -> Vec<Paragraph<'_>> {
    let mut paragraphs = vec![Paragraph::default()];
    let (mut marker_before, mut is_code, mut is_heading) = (None, false, false);
    for (at, line) in source.lines().enumerate() {
        let (marker, text) = comment(line);
        let next = || Paragraph { is_head: marker == Some("//!"), words: Vec::new() };
        if marker != marker_before {
            (marker_before, is_code) = (marker, false);
            paragraphs.push(next());
        }
        if text.starts_with("```") {
            is_code = !is_code;
        } else if !is_code {
            if text.is_empty() || begins_item(text) || is_heading {
                paragraphs.push(next());
            }
            is_heading = text.starts_with('#');
            for (nth, cell) in cells(text).enumerate() {
                if nth > 0 {
                    paragraphs.push(next());
                }
                let words = without_marker(cell).map(|word| (at + 1, word));
                paragraphs.last_mut().expect("never empty").words.extend(words);
            }
        }
    }
    paragraphs
}

/// Splits a paragraph into sentences, without names in backticks: of such a word, only the text after the last
/// backtick stays.
pub(super) fn sentences<'a>(words: &[Word<'a>]) -> Vec<Vec<Word<'a>>> {
    let mut is_name = false;
    let words = words.iter().map(|&(line, word)| {
        is_name ^= word.matches('`').count() % 2 == 1;
        (line, if is_name { "" } else { word.rsplit('`').next().unwrap_or_default() })
    });
    let words: Vec<Word> = words.collect();
    words.split_inclusive(|(_, word)| ends_sentence(word)).map(<[Word]>::to_vec).collect()
}

fn ends_sentence(word: &str) -> bool {
    word.trim_end_matches([')', ']', '"', '\'', '*', '_']).ends_with(['.', ':', ';', '?', '!'])
}

/// Removes punctuation. Text in backticks is a name, not a word.
pub(super) fn bare(word: &str) -> String {
    word.trim_matches(|c: char| !c.is_alphanumeric() && c != '`').to_lowercase()
}

/// Splits off the marker of a doc comment; returns no text if the line has none.
fn comment(line: &str) -> (Option<&'static str>, &str) {
    let line = line.trim();
    let of = |marker| line.strip_prefix(marker).map(|text| (Some(marker), text.trim()));
    of("//!").or_else(|| of("///")).unwrap_or((None, ""))
}

/// Splits a table row into cells; any other line is one cell.
fn cells(text: &str) -> impl Iterator<Item = &str> {
    let separator = if text.starts_with('|') { '|' } else { '\0' };
    text.split(separator)
}

fn begins_item(text: &str) -> bool {
    text.starts_with('#') || text.split_whitespace().next().is_some_and(is_marker)
}

fn without_marker(text: &str) -> impl Iterator<Item = &str> {
    text.split_whitespace().skip(usize::from(text.split_whitespace().next().is_some_and(is_marker)))
}

/// Recognises markers of lists (`-`, `*`, `1.`) and headings (`#`).
fn is_marker(word: &str) -> bool {
    let number = word.strip_suffix('.').unwrap_or_default();
    matches!(word, "-" | "*" | "#" | "##") || !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sentences_of(source: &str) -> Vec<String> {
        let joined = |words: Vec<Word>| words.iter().map(|&(_, word)| word).collect::<Vec<_>>().join(" ");
        paragraphs(source).iter().flat_map(|paragraph| sentences(&paragraph.words)).map(joined).collect()
    }

    #[test]
    fn a_sentence_ends_with_its_mark() {
        for (text, expected) in [
            ("A lock. A writer.", vec!["A lock.", "A writer."]),
            ("A lock: a writer; a reader", vec!["A lock:", "a writer;", "a reader"]),
            ("A lock? Yes! And", vec!["A lock?", "Yes!", "And"]),
            ("(A lock.) A writer 'waits.' So", vec!["(A lock.)", "A writer 'waits.'", "So"]),
            ("A lock (a word), 1.5 bytes, of 64. A writer", vec!["A lock (a word), 1.5 bytes, of 64.", "A writer"]),
        ] {
            assert_eq!(sentences_of(&format!("//! {text}\n")), expected, "{text}");
        }
    }

    #[test]
    fn a_sentence_goes_on_in_the_next_line_and_ends_with_its_paragraph_item_or_cell() {
        assert_eq!(sentences_of("//! A lock\n//! is held\n//!\n//! by it\n"), ["A lock is held", "by it"]);
        assert_eq!(sentences_of("//! - A lock\n//!   is held\n//! 2. by it\n"), ["A lock is held", "by it"]);
        assert_eq!(sentences_of("//! # A lock\n//! is held\n"), ["A lock", "is held"]);
        assert_eq!(sentences_of("//! | a | b |\n//! |---|---|\n//! | c | d |"), ["a", "b", "---", "---", "c", "d"]);
    }

    #[test]
    fn what_is_no_prose_is_no_sentence() {
        assert_eq!(sentences_of("//! A lock\n//! ```text\n//! it: it\n//! ```\n//! is held.\n"), ["A lock is held."]);
        assert_eq!(sentences_of("//! A `it; it.` lock, `it`. So\n"), ["A   lock, .", "So"]);
        assert!(sentences_of("// A comment.\nlet it = its;\n").is_empty());
    }
}
