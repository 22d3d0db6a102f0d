//! Reading a parameter file: a line `NAME VALUE…` per parameter, with Redis' quoting, and comment lines that begin with
//! `#`.
//!
//! `include FILE` inserts the lines of another file; a relative path is resolved from the directory of the including
//! file. The last line of a parameter counts.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use resp::split_line;

use super::{Parameters, Place, at};
use crate::administration::byte_order_mark;

/// Maximum nesting of included files: deeper nesting is a cycle.
const DEPTH_MAX: usize = 16;

/// World-readable.
const READABLE_BY_ALL: u32 = 0o004;

pub(super) fn text_of(path: &Path) -> io::Result<String> {
    byte_order_mark::read_text(path).map_err(|error| at(path.display(), error.kind(), error))
}

/// Parses `text`, the contents of the file `path` at this include depth. Errors are appended to `errors`.
pub(super) fn take(parameters: &mut Parameters, path: &Path, text: &str, depth: usize, errors: &mut Vec<io::Error>) {
    let file = Arc::new(path.to_owned());
    let mut has_secret = false;
    for (index, line) in text.lines().enumerate() {
        let place = Place::Line { file: Arc::clone(&file), number: index + 1 };
        let taken = match parsed(line) {
            Ok(None) => continue,
            Ok(Some((name, words))) => {
                has_secret |= holds_secret(&name, &words);
                match name.as_str() {
                    "include" => include(parameters, path, &place, &words, depth, errors),
                    name => parameters.take(place, name, &words),
                }
            }
            Err(what) => Err(at(&place, ErrorKind::InvalidData, what)),
        };
        errors.extend(taken.err());
    }
    if has_secret && fs::metadata(path).is_ok_and(|found| found.permissions().mode() & READABLE_BY_ALL != 0) {
        parameters.exposed.push(path.to_owned());
    }
}

fn include(
    parameters: &mut Parameters,
    within: &Path,
    place: &Place,
    words: &[String],
    depth: usize,
    errors: &mut Vec<io::Error>,
) -> io::Result<()> {
    let wrong = |what: &str| at(place, ErrorKind::InvalidData, format_args!("include '{}': {what}", words.join(" ")));
    let [named] = words else { return Err(wrong("expected exactly one file")) };
    if depth == DEPTH_MAX {
        return Err(wrong("includes are nested too deeply"));
    }
    let path = within.parent().map_or_else(|| PathBuf::from(named), |dir| dir.join(named));
    let text = byte_order_mark::read_text(&path).map_err(|error| wrong(&error.to_string()))?;
    take(parameters, &path, &text, depth + 1, errors);
    Ok(())
}

/// Splits a line into the name in lower case and its words; `None` for a comment or an empty line.
pub(super) fn parsed(line: &str) -> Result<Option<(String, Vec<String>)>, &'static str> {
    if line.trim_start().starts_with('#') {
        return Ok(None);
    }
    let words = split_line(line.as_bytes()).ok_or("unbalanced quotes")?;
    let texts: Result<Vec<String>, _> = words.into_iter().map(String::from_utf8).collect();
    let mut words = texts.map_err(|_| "line is not UTF-8")?.into_iter();
    Ok(words.next().map(|name| (name.to_ascii_lowercase(), words.collect())))
}

/// Returns whether a line contains a password.
fn holds_secret(name: &str, words: &[String]) -> bool {
    match name {
        "requirepass" => words.iter().any(|word| !word.is_empty()),
        "user" => words.iter().any(|rule| rule.starts_with('>')),
        _ => false,
    }
}

/// Quotes the value as one word of a line.
pub(super) fn quoted(value: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\'' | b'\\' | b'#') || byte >= 0x80;
    if !value.is_empty() && value.bytes().all(is_plain) {
        return value.into();
    }
    let mut quoted = String::from('"');
    for message in value.chars() {
        match message {
            '"' | '\\' => quoted.extend(['\\', message]),
            message if message.is_ascii_control() => quoted.push_str(&format!("\\x{:02x}", u32::from(message))),
            message => quoted.push(message),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_value_is_read() {
        for value in ["", "plain", "/a b", "tab\there", "\"'\\", "# no", "\u{e9}\u{7f}\n"] {
            let line = format!("dir {}", quoted(value));
            assert_eq!(parsed(&line), Ok(Some(("dir".into(), vec![value.into()]))), "{line}");
        }
        assert_eq!(quoted("/plain/path"), "/plain/path");
    }

    #[test]
    fn includes_work_and_cycles_are_refused() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let put = |name: &str, text: &str| fs::write(dir.path().join(name), text).expect("the file is written");
        put("main", "timeout 1\ninclude \"part\"\nhz 20\n");
        put("part", "timeout 2\nhz 30\n");
        let parameters = Parameters::read(&dir.path().join("main")).expect("both files are read");
        assert_eq!((parameters.value("timeout"), parameters.value("hz")), (Some("2"), Some("20")));
        put("part", "hz 20\nhz often\n");
        let error = Parameters::read(&dir.path().join("main")).expect_err("it is wrong").to_string();
        assert!(error.contains("/part:2: hz 'often'"), "{error}");
        put("part", "include main\n");
        let error = Parameters::read(&dir.path().join("main")).expect_err("it is a circle").to_string();
        assert!(
            error.contains("include 'part': includes are nested")
                || error.contains("include 'main': includes are nested"),
            "{error}"
        );
    }

    #[test]
    fn world_readable_password_file_is_noticed() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("main");
        for (text, mode, count) in [
            ("requirepass x", 0o644, 1),
            ("requirepass x", 0o640, 0),
            ("requirepass \"\"", 0o644, 0),
            ("user ada on >x", 0o604, 1),
            ("timeout 1", 0o644, 0),
        ] {
            fs::write(&path, text).expect("the file is written");
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("the mode is set");
            let parameters = Parameters::read(&path).expect("the file is read");
            assert_eq!(parameters.exposed.len(), count, "{text} {mode:o}");
        }
    }
}
