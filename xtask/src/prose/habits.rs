//! Habits of unclear prose, each with how often it may occur.

use std::sync::LazyLock;

use regex::Regex;

use super::text::Line;

/// Words that a cell of a table may have.
const CELL_WORDS_MAX: usize = 16;
/// The name of the habit that is counted by lines of doc comments.
const BEGINNING: &str = "doc comment that begins with What, How, Where …";

/// A habit of unclear prose.
pub(super) struct Habit {
    /// The name that is printed.
    pub(super) name: &'static str,
    /// Occurrences that are allowed in 10,000 words, or in 10,000 lines of doc comments.
    pub(super) count_max: usize,
    count: Box<dyn Fn(&Line) -> usize + Send + Sync>,
}

impl Habit {
    /// Returns how often the line has the habit.
    pub(super) fn count(&self, line: &Line) -> usize {
        (self.count)(line)
    }

    /// Returns true if its limit counts lines of doc comments.
    pub(super) fn is_of_doc_lines(&self) -> bool {
        self.name == BEGINNING
    }
}

/// All habits.
pub(super) static HABITS: LazyLock<Vec<Habit>> = LazyLock::new(|| {
    vec![
        words("tell", r"\b(tells?|told|telling)\b", 2),
        words(
            "what-clause",
            r"\b[Ww]hat (is|was|are|were|has|had|it|they|a|an|the|comes|follows|stands|lies|goes|readers|writers|others|can|cannot|needs)\b",
            5,
        ),
        words("riddle subject", r"\b([Nn]obody|[Ss]omebody|[Ww]hoever|[Aa]nybody|the former|the latter)\b", 1),
        words(
            "archaic word",
            r"\b(anew|meanwhile|besides|thereby|therewith|mended|at the most|in place of|but for)\b|, too\b",
            3,
        ),
        words("word of the house", r"\b(errands?|letters?|parcels?|desks?|premises|glimpses?|lend(s|ing)?|lent)\b", 3),
        Habit { name: BEGINNING, count_max: 100, count: Box::new(|line| usize::from(begins_with_question(line))) },
        page("number without a leading zero", r"(^|[^\w.…])\.\d"),
        Habit { name: "cell of more than 16 words", count_max: 0, count: Box::new(long_cells) },
    ]
});

fn words(name: &'static str, pattern: &str, count_max: usize) -> Habit {
    let pattern = Regex::new(pattern).expect("the patterns above are valid");
    Habit { name, count_max, count: Box::new(move |line| pattern.find_iter(&line.text).count()) }
}

/// A habit of pages, of which there may be none.
fn page(name: &'static str, pattern: &str) -> Habit {
    let Habit { count, .. } = words(name, pattern, 0);
    Habit { name, count_max: 0, count: Box::new(move |line| if line.is_of_page { count(line) } else { 0 }) }
}

fn begins_with_question(line: &Line) -> bool {
    let first = line.text.split_whitespace().next();
    line.is_doc_comment && matches!(first, Some("What" | "How" | "Where" | "Which" | "Whether" | "Who"))
}

fn long_cells(line: &Line) -> usize {
    let cells = || line.text.split('|').filter(|cell| cell.split_whitespace().count() > CELL_WORDS_MAX);
    if line.is_of_page && line.text.trim_start().starts_with('|') { cells().count() } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str, is_of_page: bool) -> Vec<&'static str> {
        let line = Line { number: 1, text: text.to_owned(), is_doc_comment: !is_of_page, is_of_page };
        HABITS.iter().filter(|habit| habit.count(&line) > 0).map(|habit| habit.name).collect()
    }

    #[test]
    fn each_habit_is_found() {
        for (text, is_of_page, habit) in [
            ("It is told of a key.", true, "tell"),
            ("A slot keeps what is written.", true, "what-clause"),
            ("Nobody waits.", false, "riddle subject"),
            ("A writer waits, too.", false, "archaic word"),
            ("An errand waits.", false, "word of the house"),
            ("Whether the key exists.", false, BEGINNING),
            ("It takes .48 of it.", true, "number without a leading zero"),
            ("| a b c d e f g h i j k l m n o p q |", true, "cell of more than 16 words"),
        ] {
            assert_eq!(found(text, is_of_page), [habit], "{text}");
        }
    }

    #[test]
    fn plain_sentences_have_no_habit() {
        for text in [
            "Returns the value of the key.",
            "Version 0.48 of `x..5` takes 1.5 ms",
            "| a b c d e f g h i j k l m n o p |",
            "a b c d e f g h i j k l m n o p q r",
        ] {
            assert!(found(text, true).is_empty() && found(text, false).is_empty(), "{text}");
        }
    }
}
