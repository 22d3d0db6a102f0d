//! JSON Lines: one object per line. Text is written as it is, other bytes as base64 under a separate name.

use std::borrow::Cow;
use std::io::{self, Write};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::{Deserialize, Serialize};

use super::item::Item;

/// An item; key and value each have exactly one of their two forms.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Object<'a> {
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    tree: Option<Cow<'a, str>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    key: Option<Cow<'a, str>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    key_base64: Option<Cow<'a, str>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    value: Option<Cow<'a, str>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    value_base64: Option<Cow<'a, str>>,
}

/// Writes one item.
pub(super) fn write(key: &[u8], value: &[u8], out: &mut impl Write) -> io::Result<()> {
    let (key, key_base64) = forms(key);
    let (value, value_base64) = forms(value);
    serde_json::to_writer(&mut *out, &Object { tree: None, key, key_base64, value, value_base64 })?;
    out.write_all(b"\n")
}

fn forms(bytes: &[u8]) -> (Option<Cow<'_, str>>, Option<Cow<'_, str>>) {
    match str::from_utf8(bytes) {
        Ok(text) => (Some(text.into()), None),
        Err(_) => (None, Some(BASE64_STANDARD.encode(bytes).into())),
    }
}

/// Reads one item from a line.
pub(super) fn parse(line: &[u8], item: &mut Item) -> Result<(), String> {
    let object: Object<'_> = serde_json::from_slice(line).map_err(describe)?;
    item.tree = object.tree.map(Cow::into_owned);
    half("key", object.key, object.key_base64, &mut item.key)?;
    half("value", object.value, object.value_base64, &mut item.value)
}

/// Formats an error of `serde_json` without its line number, which counts within the input and is always 1 here.
pub(super) fn describe(error: serde_json::Error) -> String {
    let (text, column) = (error.to_string(), error.column());
    match text.split_once(" at line ") {
        Some((what, _)) => format!("column {column}: {what}"),
        None => text,
    }
}

/// Reads the bytes of a key or a value from its form.
pub(super) fn half(
    name: &str,
    text: Option<Cow<'_, str>>,
    base64: Option<Cow<'_, str>>,
    bytes: &mut Vec<u8>,
) -> Result<(), String> {
    bytes.clear();
    match (text, base64) {
        (Some(text), None) => bytes.extend_from_slice(text.as_bytes()),
        (None, Some(base64)) => BASE64_STANDARD
            .decode_vec(base64.as_bytes(), bytes)
            .map_err(|error| format!("{name}_base64 is not base64: {error}"))?,
        (None, None) => return Err(format!("neither {name} nor {name}_base64 is given")),
        (Some(_), Some(_)) => return Err(format!("both {name} and {name}_base64 are given")),
    }
    Ok(())
}
