//! Inline commands: a line of words, for people at a terminal.
//!
//! The quoting is that of Redis: `"..."` supports `\n \r \t \a \b \xHH` and leaves any other escaped byte as it is;
//! `'...'` supports only `\'`; a closing quote ends its word.

/// Splits a line into words and removes their quoting; `None` if the quotes do not match.
pub fn split_line(line: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut words = Vec::new();
    let mut rest = skip_space(line);
    while !rest.is_empty() {
        let (word, after) = next_word(rest)?;
        words.push(word);
        rest = skip_space(after);
    }
    Some(words)
}

/// Returns whether C's `isspace` accepts the byte.
fn is_space(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte == 0x0b
}

fn skip_space(text: &[u8]) -> &[u8] {
    let start = text.iter().position(|byte| !is_space(*byte)).unwrap_or(text.len());
    &text[start..]
}

/// Returns the first word of `text`, and the text after it.
fn next_word(mut text: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut word = Vec::new();
    loop {
        match text {
            [] | [b' ' | b'\n' | b'\r' | b'\t', ..] => return Some((word, text)),
            [b'"', rest @ ..] => return after_quote(double_quoted(rest, &mut word)?).map(|rest| (word, rest)),
            [b'\'', rest @ ..] => return after_quote(single_quoted(rest, &mut word)?).map(|rest| (word, rest)),
            [byte, rest @ ..] => {
                word.push(*byte);
                text = rest;
            }
        }
    }
}

/// Checks that a closing quote is followed by a space or nothing.
fn after_quote(rest: &[u8]) -> Option<&[u8]> {
    rest.first().is_none_or(|byte| is_space(*byte)).then_some(rest)
}

/// Appends the text before the closing `"` to `word` and returns the text after it.
fn double_quoted<'a>(mut text: &'a [u8], word: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        let (byte, rest) = match text {
            [b'\\', b'x', high, low, rest @ ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                (hex_digit(*high) << 4 | hex_digit(*low), rest)
            }
            [b'\\', escaped, rest @ ..] => (unescape(*escaped), rest),
            [b'"', rest @ ..] => return Some(rest),
            [byte, rest @ ..] => (*byte, rest),
            [] => return None,
        };
        word.push(byte);
        text = rest;
    }
}

/// Appends the text before the closing `'` to `word` and returns the text after it.
fn single_quoted<'a>(mut text: &'a [u8], word: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        let (byte, rest) = match text {
            [b'\\', b'\'', rest @ ..] => (b'\'', rest),
            [b'\'', rest @ ..] => return Some(rest),
            [byte, rest @ ..] => (*byte, rest),
            [] => return None,
        };
        word.push(byte);
        text = rest;
    }
}

fn unescape(escaped: u8) -> u8 {
    match escaped {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 0x08,
        b'a' => 0x07,
        other => other,
    }
}

fn hex_digit(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        letter => letter.to_ascii_lowercase() - b'a' + 10,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Option<Vec<Vec<u8>>> {
        split_line(line.as_bytes())
    }

    #[test]
    fn plain_words() {
        assert_eq!(words(""), Some(vec![]));
        assert_eq!(words(" \t "), Some(vec![]));
        assert_eq!(words(" set  key\tvalue "), Some(vec![b"set".into(), b"key".into(), b"value".into()]));
    }

    #[test]
    fn double_quotes() {
        assert_eq!(words(r#""a b" """#), Some(vec![b"a b".into(), b"".into()]));
        assert_eq!(words(r#""\x41\xfF\xg\n\r\t\a\b\"\\""#), Some(vec![b"A\xffxg\n\r\t\x07\x08\"\\".into()]));
        assert_eq!(words(r#"pre"fix""#), Some(vec![b"prefix".into()]));
    }

    #[test]
    fn single_quotes() {
        assert_eq!(words(r"'a\'b\n' c"), Some(vec![br"a'b\n".into(), b"c".into()]));
    }

    #[test]
    fn unbalanced_quotes_are_refused() {
        for line in [r#"""#, r#""a"b"#, r#"'a"#, r#"'a'b"#, r#""a\""#, r#""\"#] {
            assert_eq!(words(line), None, "{line}");
        }
    }
}
