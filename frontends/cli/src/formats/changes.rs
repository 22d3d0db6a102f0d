//! Reads the operations of `hikv batch`: one per line, as tab-separated columns or as JSON objects.

use std::borrow::Cow;
use std::io::BufRead;
use std::time::Duration;

use serde::Deserialize;

use super::lines::Lines;
use super::{Format, ReadError, jsonl, tsv};
use crate::ttl_seconds;

/// An operation on a key, or a condition.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Operation {
    /// Stores a value, which expires after the time, if there is one.
    Put(Vec<u8>, Option<Duration>),
    Delete,
    /// Sets the expiry and keeps the value.
    Expire(Duration),
    /// Removes the expiry and keeps the value.
    Persist,
    /// Condition: the key has this value before the batch.
    Expect(Vec<u8>),
    /// Condition: the key does not exist before the batch.
    Absent,
}

/// An operation and its key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Change {
    /// The tree with the key; `None` for the tree of the command.
    pub(crate) tree: Option<String>,
    pub(crate) key: Vec<u8>,
    pub(crate) operation: Operation,
}

/// The error for a line of another form.
const FORMS: &str = "expected put KEY VALUE, put KEY VALUE SECONDS, delete KEY, expire KEY SECONDS, persist KEY, expect KEY \
                     VALUE, absent KEY or tree NAME, separated by tabs";

/// The content of a line.
enum Line {
    Change(Change),
    /// The following operations are on keys of this tree; without a name, of the tree of the command.
    Tree(Option<String>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Object<'a> {
    #[serde(borrow)]
    op: Cow<'a, str>,
    #[serde(default)]
    tree: Option<String>,
    #[serde(borrow, default)]
    key: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    key_base64: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    value: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    value_base64: Option<Cow<'a, str>>,
    #[serde(default)]
    ttl: Option<f64>,
}

/// Reads operations one by one; skips blank lines.
pub(crate) struct ChangeReader<R> {
    lines: Lines<R>,
    parse: fn(&[u8]) -> Result<Line, String>,
    /// The tree that the last line of that kind has named.
    tree: Option<String>,
}

impl<R: BufRead> ChangeReader<R> {
    /// Reads `input` as `format`; `None` if operations cannot have that format.
    pub(crate) fn new(input: R, format: Format) -> Option<ChangeReader<R>> {
        let parse = match format {
            Format::Tsv => of_columns,
            Format::Jsonl => of_object,
            Format::Csv => return None,
        };
        Some(ChangeReader { lines: Lines::new(input, format), parse, tree: None })
    }

    /// Reads the next operation; returns it with its line number, from 1.
    pub(crate) fn next(&mut self) -> Result<Option<(u64, Change)>, ReadError> {
        while self.lines.advance()? {
            if self.lines.content().is_empty() {
                continue;
            }
            let line = self.lines.number();
            match (self.parse)(self.lines.content()).map_err(|what| ReadError::Malformed { line, what })? {
                Line::Tree(tree) => self.tree = tree,
                Line::Change(change) => {
                    let tree = change.tree.or_else(|| self.tree.clone());
                    return Ok(Some((line, Change { tree, ..change })));
                }
            }
        }
        Ok(None)
    }
}

fn of_columns(line: &[u8]) -> Result<Line, String> {
    let columns: Vec<&[u8]> = line.split(|&byte| byte == b'\t').collect();
    let (key, operation) = match columns[..] {
        [b"tree"] => return Ok(Line::Tree(None)),
        [b"tree", name] => return Ok(Line::Tree(Some(name_of(name)?))),
        [b"put", key, value] => (key, Operation::Put(tsv::unescaped(value)?, None)),
        [b"put", key, value, time] => (key, Operation::Put(tsv::unescaped(value)?, Some(time_of(time)?))),
        [b"delete", key] => (key, Operation::Delete),
        [b"expire", key, time] => (key, Operation::Expire(time_of(time)?)),
        [b"persist", key] => (key, Operation::Persist),
        [b"expect", key, value] => (key, Operation::Expect(tsv::unescaped(value)?)),
        [b"absent", key] => (key, Operation::Absent),
        _ => return Err(FORMS.to_owned()),
    };
    Ok(Line::Change(Change { tree: None, key: tsv::unescaped(key)?, operation }))
}

fn name_of(name: &[u8]) -> Result<String, String> {
    let name = tsv::unescaped(name)?;
    String::from_utf8(name)
        .map_err(|error| format!("the tree's name '{}' is no UTF-8", error.as_bytes().escape_ascii()))
}

fn of_object(line: &[u8]) -> Result<Line, String> {
    let Object { op, tree, key, key_base64, value, value_base64, ttl } =
        serde_json::from_slice(line).map_err(jsonl::describe)?;
    let mut bytes = (Vec::new(), Vec::new());
    jsonl::half("key", key, key_base64, &mut bytes.0)?;
    let has_value = value.is_some() || value_base64.is_some();
    if has_value {
        jsonl::half("value", value, value_base64, &mut bytes.1)?;
    }
    let time = ttl.map(|ttl| ttl_seconds::of_number(ttl).map_err(|error| format!("ttl {ttl}: {error}"))).transpose()?;
    let operation = match (&*op, has_value, time) {
        ("put", true, time) => Operation::Put(bytes.1, time),
        ("delete", false, None) => Operation::Delete,
        ("expire", false, Some(time)) => Operation::Expire(time),
        ("persist", false, None) => Operation::Persist,
        ("expect", true, None) => Operation::Expect(bytes.1),
        ("absent", false, None) => Operation::Absent,
        ("put" | "delete" | "expire" | "persist" | "expect" | "absent", ..) => {
            return Err(format!(
                "op {op} has wrong fields: put needs value and may have ttl, expect needs value, expire needs ttl, all others have neither"
            ));
        }
        _ => return Err(format!("unknown op '{op}'; expected put, delete, expire, persist, expect or absent")),
    };
    Ok(Line::Change(Change { tree, key: bytes.0, operation }))
}

fn time_of(text: &[u8]) -> Result<Duration, String> {
    let shown = tsv::Escaped(text);
    let number: Option<f64> = str::from_utf8(text).ok().and_then(|text| text.parse().ok());
    let number = number.ok_or_else(|| format!("'{shown}' is not a number of seconds"))?;
    ttl_seconds::of_number(number).map_err(|error| format!("'{shown}' seconds: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str, format: Format) -> Result<Vec<Change>, String> {
        let mut reader = ChangeReader::new(text.as_bytes(), format).expect("a format of operations");
        let mut changes = Vec::new();
        loop {
            match reader.next() {
                Ok(Some((_, change))) => changes.push(change),
                Ok(None) => return Ok(changes),
                Err(ReadError::Malformed { line, what }) => return Err(format!("{line}: {what}")),
                Err(ReadError::Input(error)) => panic!("{error}"),
                Err(ReadError::CutOff { what, .. }) => panic!("{what}"),
            }
        }
    }

    #[test]
    fn both_forms_say_the_same() {
        let tsv = "tree\tt\nabsent\tn\ntree\nput\ta\\tb\t\\xff\n\nput\tk\tv\t1.5\r\ndelete\t\nexpire\tk\t2\npersist\tk\nexpect\tk\tv\nabsent\tn";
        let json = r#"{"op":"absent","key":"n","tree":"t"}
            {"op":"put","key":"a\tb","value_base64":"/w=="}
            {"op":"put","key":"k","value":"v","ttl":1.5}
            {"op":"delete","key":""}
            {"op":"expire","key":"k","ttl":2}
            {"op":"persist","key":"k"}
            {"op":"expect","key":"k","value":"v"}
            {"op":"absent","key":"n"}"#;
        let changes = all(tsv, Format::Tsv).unwrap();
        let tree = Some("t".to_owned());
        assert_eq!(changes[0], Change { tree, key: b"n".to_vec(), operation: Operation::Absent });
        let put = Operation::Put(vec![0xFF], None);
        assert_eq!(changes[1], Change { tree: None, key: b"a\tb".to_vec(), operation: put });
        assert_eq!(changes.len(), 8);
        assert_eq!(all(json, Format::Jsonl).unwrap(), changes);
    }

    #[test]
    fn unknown_operation_is_reported_with_line() {
        for (text, format, words) in [
            ("put\ta\tb\nput\ta", Format::Tsv, &["2: ", "put KEY VALUE"][..]),
            ("Put\ta\tb", Format::Tsv, &["1: "]),
            ("expire\ta\tsoon", Format::Tsv, &["'soon'"]),
            ("put\ta\tb\t-1", Format::Tsv, &["'-1'"]),
            ("put\t\\q\tb", Format::Tsv, &["\\q"]),
            ("tree\t\\xff", Format::Tsv, &["1: ", "UTF-8"]),
            ("tree\ta\tb", Format::Tsv, &["tree NAME"]),
            (r#"{"op":"rename","key":"a"}"#, Format::Jsonl, &["'rename'"]),
            (r#"{"op":"delete","key":"a","value":"b"}"#, Format::Jsonl, &["op delete"]),
            (r#"{"op":"put","value":"b"}"#, Format::Jsonl, &["neither key"]),
            (r#"{"op":"put","key":"a","value":"b","ttl":-1}"#, Format::Jsonl, &["ttl -1"]),
        ] {
            let error = all(text, format).unwrap_err();
            assert!(words.iter().all(|word| error.contains(word)), "{text}: {error}");
        }
    }
}
