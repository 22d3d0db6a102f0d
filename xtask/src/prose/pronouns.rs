//! Counts pronouns: at most one per sentence in a module head, at most two in a doc comment. With more, a newcomer
//! must find out the noun behind each. (A doc comment is next to its item, which one of the two usually means.)

use super::text::{Paragraph, Word, bare, paragraphs, sentences};

const PRONOUNS: &str = "he him his himself she her hers herself it its itself they them their theirs themselves";
const IN_HEADS_MAX: usize = 1;
const IN_DOC_COMMENTS_MAX: usize = 2;

/// Finds the sentences with too many pronouns, each with the line of the first excess one, and all its pronouns.
pub(super) fn hits_of(source: &str) -> Vec<(usize, String)> {
    paragraphs(source).iter().flat_map(hits_in).collect()
}

fn hits_in(paragraph: &Paragraph) -> Vec<(usize, String)> {
    let count_max = if paragraph.is_head { IN_HEADS_MAX } else { IN_DOC_COMMENTS_MAX };
    sentences(&paragraph.words).iter().filter_map(|sentence| hit(sentence, count_max)).collect()
}

fn hit(sentence: &[Word], count_max: usize) -> Option<(usize, String)> {
    let words = sentence.iter().map(|&(line, word)| (line, bare(word)));
    let (lines, pronouns): (Vec<_>, Vec<_>) = words.filter(|(_, word)| is_pronoun(word)).unzip();
    Some((*lines.get(count_max)?, pronouns.join(", ")))
}

fn is_pronoun(word: &str) -> bool {
    PRONOUNS.split(' ').any(|pronoun| pronoun == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hits(text: &str) -> Vec<(usize, String)> {
        hits_of(&text.lines().map(|line| format!("//! {line}\n")).collect::<String>())
    }

    #[test]
    fn a_second_pronoun_of_a_sentence_is_found() {
        for text in [
            "It waits until it is awake.",
            "The lock keeps its word to itself.",
            "A lock. A writer takes it, and gives it up.",
            "- a reader that sees them, (its) own",
            "| a lock | their writers hold it |",
        ] {
            assert_eq!(hits(text).len(), 1, "{text}");
        }
        assert_eq!(hits("Its\nwriter holds\nit, and they wait."), [(3, "its, it, they".into())]);
    }

    #[test]
    fn a_sentence_may_have_one() {
        for text in [
            "It waits. It is awake: it reads; it ends.",
            "| its lock | its writer |",
            "- it\n- its",
            "The `it` and `its own` of it.",
            "```\nit has its lock\n```",
        ] {
            assert!(hits(text).is_empty(), "{text}");
        }
    }

    #[test]
    fn a_sentence_of_a_doc_comment_may_have_two() {
        assert!(hits_of("/// It has its lock.\n// It has its lock, and they wait.\n").is_empty());
        assert_eq!(hits_of("fn f() {}\n/// It has its lock,\n/// and they wait.\n"), [(3, "it, its, they".into())]);
    }
}
