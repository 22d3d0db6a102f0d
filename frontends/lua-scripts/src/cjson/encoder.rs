//! From Lua values to JSON.

use std::fmt::Write;

use mlua::{Lua, Table, Value};

use super::{DEPTH_MAX, InvalidNumbers, Settings, null};
use crate::errors::{at_place, type_name};
use crate::limits::check_output;
use crate::numbers::{general, number_of};

/// Returns the value as JSON.
pub(super) fn encode(lua: &Lua, value: &Value, settings: Settings) -> mlua::Result<Vec<u8>> {
    let mut encoder = Encoder { lua, settings, output: Vec::new() };
    encoder.value(value, 0)?;
    Ok(encoder.output)
}

struct Encoder<'a> {
    lua: &'a Lua,
    settings: Settings,
    output: Vec<u8>,
}

impl Encoder<'_> {
    fn refuse<T>(&self, value: &Value, why: &str) -> mlua::Result<T> {
        let text = format!("Cannot serialise {}: {why}", type_name(Some(value)));
        Err(at_place(self.lua, &text))
    }

    fn value(&mut self, value: &Value, depth: i64) -> mlua::Result<()> {
        check_output(self.output.len())?;
        match value {
            Value::String(text) => self.string(&text.as_bytes())?,
            Value::Integer(_) | Value::Number(_) => self.number(value)?,
            Value::Boolean(value) => self.output.extend_from_slice(if *value { b"true" } else { b"false" }),
            Value::Nil => self.output.extend_from_slice(b"null"),
            Value::Table(table) => self.table(table, depth + 1)?,
            value if *value == null() => self.output.extend_from_slice(b"null"),
            other => return self.refuse(other, "type not supported"),
        }
        Ok(())
    }

    fn number(&mut self, value: &Value) -> mlua::Result<()> {
        let number = number_of(value).unwrap_or_default();
        if !number.is_finite() {
            match self.settings.encoded_invalid {
                InvalidNumbers::Refused => return self.refuse(value, "must not be NaN or Inf"),
                InvalidNumbers::Null => {
                    self.output.extend_from_slice(b"null");
                    return Ok(());
                }
                InvalidNumbers::Accepted => {}
            }
        }
        let text = if number.is_nan() { "nan".into() } else { general(number, self.settings.precision as usize) };
        self.output.extend_from_slice(text.as_bytes());
        Ok(())
    }

    fn string(&mut self, text: &[u8]) -> mlua::Result<()> {
        check_output(self.output.len() + text.len())?;
        self.output.push(b'"');
        for byte in text {
            match byte {
                b'"' => self.output.extend_from_slice(b"\\\""),
                b'\\' => self.output.extend_from_slice(b"\\\\"),
                b'/' => self.output.extend_from_slice(b"\\/"),
                8 => self.output.extend_from_slice(b"\\b"),
                b'\t' => self.output.extend_from_slice(b"\\t"),
                b'\n' => self.output.extend_from_slice(b"\\n"),
                12 => self.output.extend_from_slice(b"\\f"),
                b'\r' => self.output.extend_from_slice(b"\\r"),
                0..32 | 127 => {
                    let mut escape = String::new();
                    let _ = write!(escape, "\\u{byte:04x}");
                    self.output.extend_from_slice(escape.as_bytes());
                }
                byte => self.output.push(*byte),
            }
        }
        self.output.push(b'"');
        Ok(())
    }

    fn table(&mut self, table: &Table, depth: i64) -> mlua::Result<()> {
        if depth > self.settings.encode_depth_max.min(DEPTH_MAX) {
            let text = format!("Cannot serialise, excessive nesting ({depth})");
            return Err(at_place(self.lua, &text));
        }
        let count = self.array_len(table)?;
        if count > 0 {
            self.output.push(b'[');
            for index in 1..=count {
                if index > 1 {
                    self.output.push(b',');
                }
                self.value(&table.raw_get::<Value>(index)?, depth)?;
            }
            self.output.push(b']');
            return Ok(());
        }
        self.output.push(b'{');
        let mut is_first = true;
        // Not by `for_each`, whose frame on the stack would hide the place of the call.
        for pair in table.pairs::<Value, Value>() {
            let (key, value) = pair?;
            if !std::mem::take(&mut is_first) {
                self.output.push(b',');
            }
            match &key {
                Value::String(key) => self.string(&key.as_bytes())?,
                Value::Integer(_) | Value::Number(_) => {
                    self.output.push(b'"');
                    self.number(&key)?;
                    self.output.push(b'"');
                }
                _ => return self.refuse(&Value::Table(table.clone()), "table key must be a number or string"),
            }
            self.output.push(b':');
            self.value(&value, depth)?;
        }
        self.output.push(b'}');
        Ok(())
    }

    /// Returns the length of an array; 0 for a table that becomes an object.
    fn array_len(&self, table: &Table) -> mlua::Result<i64> {
        let (mut key_max, mut count, mut is_array) = (0, 0, true);
        // The table's first other key ends the search.
        for pair in table.pairs::<Value, Value>() {
            match pair?.0 {
                Value::Integer(key) if key >= 1 => {
                    key_max = key_max.max(key);
                    count += 1;
                }
                _ => {
                    is_array = false;
                    break;
                }
            }
        }
        if !is_array {
            return Ok(0);
        }
        let Settings { sparse_ratio, sparse_safe, converts_sparse, .. } = self.settings;
        if sparse_ratio > 0 && key_max > count * sparse_ratio && key_max > sparse_safe {
            if !converts_sparse {
                return self.refuse(&Value::Table(table.clone()), "excessively sparse array");
            }
            return Ok(0);
        }
        Ok(key_max)
    }
}
