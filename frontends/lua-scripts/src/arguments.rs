//! Arguments of library functions, checked as Lua's C functions check them.

use mlua::{Lua, LuaString, MultiValue, Value};

use crate::errors::{bad_argument, type_name};

/// The arguments of one call.
pub(crate) struct Args<'a> {
    pub(crate) lua: &'a Lua,
    /// The function's name, for errors.
    pub(crate) function: &'static str,
    pub(crate) values: MultiValue,
}

impl Args<'_> {
    /// Returns the error of argument number `index`, from 0.
    pub(crate) fn bad(&self, index: usize, why: &str) -> mlua::Error {
        bad_argument(self.lua, index + 1, self.function, why)
    }

    fn expected(&self, index: usize, kind: &str) -> mlua::Error {
        self.bad(index, &format!("{kind} expected, got {}", type_name(self.values.get(index))))
    }

    /// Returns a number; a text that is one counts as well.
    pub(crate) fn number(&self, index: usize) -> mlua::Result<f64> {
        match self.values.get(index) {
            Some(Value::Integer(value)) => Ok(*value as f64),
            Some(Value::Number(value)) => Ok(*value),
            Some(value @ Value::String(_)) => {
                self.lua.coerce_number(value.clone())?.ok_or_else(|| self.expected(index, "number"))
            }
            _ => Err(self.expected(index, "number")),
        }
    }

    /// Returns a number without its fraction; `default` if there is no such argument.
    pub(crate) fn integer_or(&self, index: usize, default: i64) -> mlua::Result<i64> {
        match self.values.get(index) {
            None | Some(Value::Nil) => Ok(default),
            Some(_) => Ok(self.number(index)? as i64),
        }
    }

    /// Returns a text; a number counts as well.
    pub(crate) fn string(&self, index: usize) -> mlua::Result<LuaString> {
        match self.values.get(index) {
            Some(Value::String(text)) => Ok(text.clone()),
            Some(value @ (Value::Integer(_) | Value::Number(_))) => {
                self.lua.coerce_string(value.clone())?.ok_or_else(|| self.expected(index, "string"))
            }
            _ => Err(self.expected(index, "string")),
        }
    }

    /// Returns the argument, or nil.
    pub(crate) fn value(&self, index: usize) -> Value {
        self.values.get(index).cloned().unwrap_or(Value::Nil)
    }
}
