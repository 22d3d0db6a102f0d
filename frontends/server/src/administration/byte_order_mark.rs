//! Reading small text files, without a byte order mark.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::Path;

/// Larger than any file of parameters, users, passwords or certificates.
const FILE_BYTES_MAX: u64 = 64 << 20;

const UTF_8: &[u8] = b"\xef\xbb\xbf";
const UTF_16: [&[u8]; 2] = [b"\xff\xfe", b"\xfe\xff"];

/// Returns the text without a leading UTF-8 byte order mark.
///
/// # Errors
/// A UTF-16 byte order mark: no file of this program is UTF-16.
pub fn without_mark(text: &[u8]) -> io::Result<&[u8]> {
    if UTF_16.iter().any(|mark| text.starts_with(mark)) {
        let what = "file is UTF-16 instead of UTF-8; convert it with iconv -f UTF-16 -t UTF-8";
        return Err(io::Error::new(ErrorKind::InvalidData, what));
    }
    Ok(text.strip_prefix(UTF_8).unwrap_or(text))
}

/// Returns whether a text that starts with these bytes would be mistaken for one with a byte order mark.
#[must_use]
pub fn starts_with_mark(bytes: &[u8]) -> bool {
    bytes.starts_with(UTF_8) || UTF_16.iter().any(|mark| bytes.starts_with(mark))
}

/// Reads a small file, without its byte order mark. An endless file is not read until memory is exhausted.
///
/// # Errors
/// Errors of the operating system, a file that is too long, and the errors of [`without_mark`].
pub fn read_unmarked(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        let what = format!("file is larger than {FILE_BYTES_MAX} bytes");
        return Err(io::Error::new(ErrorKind::InvalidData, what));
    }
    let mark_bytes = bytes.len() - without_mark(&bytes)?.len();
    bytes.drain(..mark_bytes);
    Ok(bytes)
}

/// Like [`read_unmarked`], for UTF-8 text.
pub(crate) fn read_text(path: &Path) -> io::Result<String> {
    let text = String::from_utf8(read_unmarked(path)?);
    text.map_err(|error| io::Error::new(ErrorKind::InvalidData, error.utf8_error()))
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
    }

    #[test]
    fn small_files_have_an_end() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        std::fs::write(&file, b"\xef\xbb\xbftext").unwrap();
        assert_eq!(read_text(&file).unwrap(), "text");
        std::fs::write(&file, b"\xef\xbb\xbf\xff").unwrap();
        assert!(read_text(&file).is_err());
        let endless = read_unmarked(Path::new("/dev/zero")).unwrap_err();
        assert!(endless.to_string().contains("larger than 67108864 bytes"), "{endless}");
    }
}
