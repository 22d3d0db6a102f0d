//! The mark that some editors put before a text.

use std::io::{self, ErrorKind};

const UTF_8: &[u8] = b"\xef\xbb\xbf";
const UTF_16: [&[u8]; 2] = [b"\xff\xfe", b"\xfe\xff"];

/// The text without the mark of UTF-8, if it begins with one.
///
/// # Errors
/// If the mark is that of UTF-16, which no file of this program is.
pub fn without_mark(text: &[u8]) -> io::Result<&[u8]> {
    if UTF_16.iter().any(|mark| text.starts_with(mark)) {
        let what = "this is UTF-16, and UTF-8 is wanted: iconv -f UTF-16 -t UTF-8 converts it";
        return Err(io::Error::new(ErrorKind::InvalidData, what));
    }
    Ok(text.strip_prefix(UTF_8).unwrap_or(text))
}

/// Whether a text that began with these bytes would be taken for one with a mark.
#[must_use]
pub fn looks_marked(bytes: &[u8]) -> bool {
    bytes.starts_with(UTF_8) || UTF_16.iter().any(|mark| bytes.starts_with(mark))
}

/// The text, in UTF-8, without a mark.
pub(crate) fn text_of(bytes: &[u8]) -> io::Result<String> {
    let text = without_mark(bytes)?;
    String::from_utf8(text.to_vec()).map_err(|error| io::Error::new(ErrorKind::InvalidData, error.utf8_error()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_skipped_or_named() {
        assert_eq!(without_mark(b"\xef\xbb\xbftext").unwrap(), b"text");
        assert_eq!(without_mark(b"\xef\xbb\xbf\xef\xbb\xbf").unwrap(), UTF_8, "one is skipped");
        assert_eq!(without_mark(b"text\xef\xbb\xbf").unwrap(), b"text\xef\xbb\xbf");
        for mark in UTF_16 {
            assert!(without_mark(mark).unwrap_err().to_string().contains("iconv"));
        }
        assert!(text_of(b"\xef\xbb\xbf\xff").is_err());
    }
}
