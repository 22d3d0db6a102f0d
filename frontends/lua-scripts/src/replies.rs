//! From replies of commands to Lua values.

use mlua::{Lua, Table, Value};

/// Returns the Lua value of a reply that the server has written.
pub(crate) fn to_lua(lua: &Lua, reply: &[u8]) -> mlua::Result<Value> {
    Reader { lua, rest: reply }.value()
}

struct Reader<'a> {
    lua: &'a Lua,
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Takes the bytes up to the next line end.
    fn line(&mut self) -> &'a [u8] {
        let end = self.rest.iter().position(|byte| *byte == b'\r').unwrap_or(self.rest.len());
        let line = &self.rest[..end];
        self.rest = self.rest.get(end + 2..).unwrap_or_default();
        line
    }

    fn number(&mut self) -> i64 {
        resp::parse_integer(self.line()).unwrap_or_default()
    }

    /// Takes a byte string whose length is next; `None` for null.
    fn bulk(&mut self) -> Option<&'a [u8]> {
        let len = usize::try_from(self.number()).ok()?;
        let bytes = self.rest.get(..len).unwrap_or_default();
        self.rest = self.rest.get(len + 2..).unwrap_or_default();
        Some(bytes)
    }

    fn field(&self, name: &str, value: impl mlua::IntoLua) -> mlua::Result<Value> {
        let table = self.lua.create_table_with_capacity(0, 1)?;
        table.raw_set(name, value)?;
        Ok(Value::Table(table))
    }

    fn string(&self, bytes: &[u8]) -> mlua::Result<Value> {
        Ok(Value::String(self.lua.create_string(bytes)?))
    }

    fn value(&mut self) -> mlua::Result<Value> {
        let Some((kind, rest)) = self.rest.split_first() else { return Ok(Value::Nil) };
        self.rest = rest;
        match kind {
            b'+' => {
                let line = self.line();
                self.field("ok", self.string(line)?)
            }
            b'-' => {
                let line = self.line();
                Ok(Value::Table(error_table(self.lua, line, true)?))
            }
            b':' => Ok(Value::Number(self.number() as f64)),
            b'$' => match self.bulk() {
                Some(bytes) => self.string(bytes),
                None => Ok(Value::Boolean(false)),
            },
            b'*' | b'>' => match self.number() {
                count @ 0.. => self.array(count),
                _ => Ok(Value::Boolean(false)),
            },
            b'#' => Ok(Value::Boolean(self.line() == b"t")),
            b',' => {
                let text = String::from_utf8_lossy(self.line());
                self.field("double", text.parse::<f64>().unwrap_or(f64::NAN))
            }
            b'(' => {
                let digits = self.line();
                self.field("big_number", self.string(digits)?)
            }
            b'=' => self.verbatim(),
            b'%' => self.map(),
            b'~' => self.set(),
            b'|' => {
                self.map()?;
                self.value()
            }
            _ => {
                self.line();
                Ok(Value::Nil)
            }
        }
    }

    fn array(&mut self, count: i64) -> mlua::Result<Value> {
        let table = self.lua.create_table_with_capacity(count as usize, 0)?;
        for index in 1..=count {
            table.raw_set(index, self.value()?)?;
        }
        Ok(Value::Table(table))
    }

    fn verbatim(&mut self) -> mlua::Result<Value> {
        let text = self.bulk().unwrap_or_default();
        let (format, text) = text.split_at_checked(4).unwrap_or((b"txt:", text));
        let table = self.lua.create_table_with_capacity(0, 2)?;
        table.raw_set("format", self.string(&format[..3])?)?;
        table.raw_set("string", self.string(text)?)?;
        self.field("verbatim_string", table)
    }

    fn map(&mut self) -> mlua::Result<Value> {
        let table = self.lua.create_table()?;
        for _ in 0..self.number() {
            let (key, value) = (self.value()?, self.value()?);
            table.raw_set(key, value)?;
        }
        self.field("map", table)
    }

    fn set(&mut self) -> mlua::Result<Value> {
        let table = self.lua.create_table()?;
        for _ in 0..self.number() {
            table.raw_set(self.value()?, true)?;
        }
        self.field("set", table)
    }
}

/// The field of an error that the host has counted, as in Redis.
pub(crate) const COUNTED: &str = "ignore_error_stats_update";

/// Returns an error reply as a script sees it.
pub(crate) fn error_table(lua: &Lua, text: &[u8], is_counted: bool) -> mlua::Result<Table> {
    let table = lua.create_table_with_capacity(0, 2)?;
    table.raw_set("err", lua.create_string(text)?)?;
    if is_counted {
        table.raw_set(COUNTED, true)?;
    }
    Ok(table)
}
