//! From a script's result to the reply.

use mlua::{Table, Value};
use resp::{Protocol, Reply};

use crate::numbers::number_of;

/// Deeper tables are refused: the conversion is recursive.
const DEPTH_MAX: usize = 1000;

/// Writes results as replies.
pub(crate) struct Results<'a, 'r> {
    pub(crate) reply: &'a mut Reply<'r>,
    /// The version that the script has chosen for itself.
    pub(crate) script_protocol: Protocol,
    /// The reply must not become longer than this position.
    pub(crate) end_max: usize,
}

/// The reply has become too long or too deep.
pub(crate) struct TooLarge(pub(crate) &'static str);

impl Results<'_, '_> {
    /// Writes the reply for a value.
    pub(crate) fn write(&mut self, value: &Value, depth: usize) -> Result<(), TooLarge> {
        if depth > DEPTH_MAX {
            return Err(TooLarge("ERR reached lua stack limit"));
        }
        if self.reply.len_bytes() > self.end_max {
            return Err(TooLarge("ERR the script's reply exceeds the maximum size of a reply"));
        }
        match value {
            Value::String(text) => self.reply.bulk(&text.as_bytes()),
            Value::Integer(number) => self.reply.integer(*number),
            Value::Number(number) => self.reply.integer(truncated(*number)),
            Value::Boolean(value) if self.script_protocol == Protocol::Resp3 => self.reply.boolean(*value),
            Value::Boolean(true) => self.reply.integer(1),
            Value::Table(table) => return self.table(table, depth),
            _ => self.reply.null_bulk(),
        }
        Ok(())
    }

    fn table(&mut self, table: &Table, depth: usize) -> Result<(), TooLarge> {
        let field = |name: &str| table.raw_get::<Value>(name).unwrap_or(Value::Nil);
        if let Value::String(text) = field("err") {
            self.reply.error(&text.as_bytes());
            return Ok(());
        }
        if let Value::String(text) = field("ok") {
            // It is a text of C in Redis.
            self.reply.status(text.as_bytes().split(|byte| *byte == 0).next().unwrap_or_default());
            return Ok(());
        }
        if let Some(number) = number_of(&field("double")) {
            self.reply.double(number);
            return Ok(());
        }
        if let Value::Table(map) = field("map") {
            self.reply.map(count(map.pairs::<Value, Value>())?);
            return map.pairs().try_for_each(|pair| {
                let (key, value) = pair.map_err(unreadable)?;
                self.write(&key, depth + 1)?;
                self.write(&value, depth + 1)
            });
        }
        if let Value::Table(set) = field("set") {
            self.reply.set(count(set.pairs::<Value, Value>())?);
            return set
                .pairs::<Value, Value>()
                .try_for_each(|pair| self.write(&pair.map_err(unreadable)?.0, depth + 1));
        }
        if let Value::String(digits) = field("big_number") {
            self.reply.big_number(&digits.to_string_lossy());
            return Ok(());
        }
        if let Value::Table(verbatim) = field("verbatim_string") {
            let part = |name: &str| verbatim.raw_get::<Value>(name).unwrap_or(Value::Nil);
            if let (Value::String(text), Value::String(format)) = (part("string"), part("format")) {
                self.reply.verbatim_in(&format.as_bytes(), &text.as_bytes());
                return Ok(());
            }
        }
        self.reply.array(count(table.sequence_values::<Value>())?);
        table.sequence_values().try_for_each(|value| self.write(&value.map_err(unreadable)?, depth + 1))
    }
}

/// Counts values without keeping them: mlua can keep about 8000.
fn count<T>(mut values: impl Iterator<Item = mlua::Result<T>>) -> Result<usize, TooLarge> {
    values.try_fold(0, |count, value| value.map(|_| count + 1)).map_err(unreadable)
}

fn unreadable(_: mlua::Error) -> TooLarge {
    TooLarge("ERR not enough memory")
}

/// Returns the number without its fraction; numbers out of range become the lowest, as on x86.
fn truncated(number: f64) -> i64 {
    const END: f64 = 9_223_372_036_854_775_808.0;
    if (-END..END).contains(&number) { number as i64 } else { i64::MIN }
}
