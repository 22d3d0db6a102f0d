//! Redis' glob patterns, on bytes.
//!
//! `*` matches any bytes, `?` any single byte, `[a-z_]` one of these, `[^a]` any other. A backslash escapes the next
//! byte, also inside brackets. An unclosed set ends with the pattern. Unlike Redis' own matcher, this one needs at
//! worst time proportional to pattern times text, and `*` matches an empty text.

/// Returns whether `pattern` matches all of `text`.
#[must_use]
pub fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut rest, mut left) = (pattern, text);
    // The pattern after the last star, and the text after the part that the star has matched.
    let mut retry: Option<(&[u8], &[u8])> = None;
    loop {
        if let [b'*', after @ ..] = rest {
            retry = Some((after, left));
            rest = after;
            continue;
        }
        match (step(rest, left), retry) {
            (Step::Done, _) => return true,
            (Step::Next(pattern, text), _) => (rest, left) = (pattern, text),
            // Only the last star needs to match more: backtracking to earlier ones cannot help.
            (Step::Differs, Some((after, [_, text @ ..]))) => {
                retry = Some((after, text));
                (rest, left) = (after, text);
            }
            (Step::Differs, _) => return false,
        }
    }
}

enum Step<'a> {
    /// Both are at their ends.
    Done,
    /// The remaining pattern and text.
    Next(&'a [u8], &'a [u8]),
    Differs,
}

/// Matches one byte; the pattern does not begin with a star.
fn step<'a>(pattern: &'a [u8], text: &'a [u8]) -> Step<'a> {
    let Some((&byte, text)) = text.split_first() else {
        return if pattern.is_empty() { Step::Done } else { Step::Differs };
    };
    let (is_match, pattern) = match pattern {
        [] => return Step::Differs,
        [b'?', after @ ..] => (true, after),
        [b'[', b'^', set @ ..] => {
            let (is_in, after) = find_in_set(set, byte);
            (!is_in, after)
        }
        [b'[', set @ ..] => find_in_set(set, byte),
        [b'\\', literal, after @ ..] | [literal, after @ ..] => (*literal == byte, after),
    };
    if is_match { Step::Next(pattern, text) } else { Step::Differs }
}

/// Returns whether the set contains `byte`, and the pattern after the set.
fn find_in_set(mut set: &[u8], byte: u8) -> (bool, &[u8]) {
    let mut is_in = false;
    loop {
        set = match set {
            [] => return (is_in, set),
            [b']', after @ ..] => return (is_in, after),
            [b'\\', literal, after @ ..] => {
                is_in |= *literal == byte;
                after
            }
            [one, b'-', other, after @ ..] => {
                is_in |= (*one.min(other)..=*one.max(other)).contains(&byte);
                after
            }
            [literal, after @ ..] => {
                is_in |= *literal == byte;
                after
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn assert_matching(pattern: &str, matching: &[&str], others: &[&str]) {
        for text in matching {
            assert!(matches(pattern.as_bytes(), text.as_bytes()), "{pattern} does not match {text:?}");
        }
        for text in others {
            assert!(!matches(pattern.as_bytes(), text.as_bytes()), "{pattern} matches {text:?}");
        }
    }

    #[test]
    fn the_examples_of_redis_keys() {
        assert_matching("h?llo", &["hello", "hallo", "hxllo"], &["hllo", "heello"]);
        assert_matching("h*llo", &["hllo", "heeeello"], &["hllox", "ello"]);
        assert_matching("h[ae]llo", &["hello", "hallo"], &["hillo"]);
        assert_matching("h[^e]llo", &["hallo", "hbllo"], &["hello", "hllo"]);
        assert_matching("h[a-b]llo", &["hallo", "hbllo"], &["hcllo"]);
    }

    #[test]
    fn stars_match_as_much_as_possible() {
        assert_matching("*", &["", "a", "\n"], &[]);
        assert_matching("**", &["", "ab"], &[]);
        assert_matching("a*b*c", &["abc", "aXbXbXc", "abcc"], &["ab", "acb", "abcd"]);
        assert_matching("*aab", &["aaab", "aab"], &["aaba", "ab"]);
        assert_matching("user:*:name", &["user:7:name", "user::name", "user:7:x:name"], &["user:name"]);
        assert_matching("a*?", &["ab", "abc"], &["a"]);
    }

    #[test]
    fn pattern_matches_whole_text() {
        assert_matching("", &[""], &["a"]);
        assert_matching("a", &["a"], &["", "ab", "ba", "A"]);
        assert_matching("?", &["a"], &["", "ab"]);
    }

    #[test]
    fn backslash_escapes_next_byte() {
        assert_matching(r"a\*", &["a*"], &["ab", "a"]);
        assert_matching(r"\[a]", &["[a]"], &["a"]);
        assert_matching(r"[\]\-]", &["]", "-"], &["\\", "a"]);
        assert_matching(r"a\", &[r"a\"], &["a"]);
    }

    #[test]
    fn sets_are_those_of_redis() {
        assert_matching("[z-a]", &["a", "m", "z"], &["-", "A"]);
        // From the bracket to the letter, and not closed.
        assert_matching("[a-]", &["a", "]", "_"], &["-", "b"]);
        assert_matching("[-a]", &["-", "a"], &["b"]);
        assert_matching("[a^]", &["a", "^"], &["b"]);
        assert_matching("[]", &[], &["", "]", "a"]);
        assert_matching("[^]", &["a", "]"], &["", "ab"]);
        assert_matching("x[ab", &["xa", "xb"], &["x", "x[ab", "xab"]);
        assert_matching("[", &[], &["", "["]);
    }

    #[test]
    fn binary_bytes_match() {
        assert!(matches(b"\xff*[\x80-\xfe]?", b"\xff\0\x90\xff"));
        assert!(!matches(b"[\x80-\xfe]", b"\xff"));
    }

    #[test]
    fn pattern_of_many_stars_ends_soon() {
        let (pattern, text) = (b"a*".repeat(2_000), b"a".repeat(60_000));
        assert!(matches(&pattern, &text));
        assert!(!matches(&[&pattern[..], b"b"].concat(), &text));
    }
}
