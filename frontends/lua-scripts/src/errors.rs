//! Errors that library functions raise in a script.

use std::fmt;

use mlua::{Lua, Value};

use crate::control::Stop;

/// The chunk name of scripts; Lua shows it without the `@`.
pub(crate) const SCRIPT_NAME: &str = "@user_script";

/// An error with its text.
#[derive(Debug, Clone)]
pub(crate) struct ScriptError {
    text: Vec<u8>,
    /// The text has a code, as an error reply has, and the error is a table for `xpcall`.
    is_reply: bool,
    /// The host has counted the error.
    is_counted: bool,
    /// The script must end.
    is_stop: bool,
}

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.text))
    }
}

impl std::error::Error for ScriptError {}

impl From<ScriptError> for mlua::Error {
    fn from(error: ScriptError) -> mlua::Error {
        mlua::Error::external(error)
    }
}

impl ScriptError {
    /// Creates an error as `redis.call` raises it; the text has a code.
    pub(crate) fn reply(text: impl Into<Vec<u8>>) -> ScriptError {
        ScriptError { is_reply: true, ..ScriptError::plain(text) }
    }

    /// Creates the error of a command, which the host has counted.
    pub(crate) fn counted(text: impl Into<Vec<u8>>) -> ScriptError {
        ScriptError { is_counted: true, ..ScriptError::reply(text) }
    }

    /// Creates an error without a code.
    fn plain(text: impl Into<Vec<u8>>) -> ScriptError {
        ScriptError { text: text.into(), is_reply: false, is_counted: false, is_stop: false }
    }

    /// Creates the error of a stopped script.
    pub(crate) fn stopped(stop: Stop) -> ScriptError {
        let text = match stop {
            Stop::Killed => "ERR Script killed by user with SCRIPT KILL...",
            Stop::Abandoned => "ERR Script stopped by the server.",
        };
        ScriptError { is_stop: true, ..ScriptError::reply(text) }
    }

    /// Returns the error inside of `error`; an error of the library itself becomes a text.
    pub(crate) fn of(error: &mlua::Error) -> ScriptError {
        match error {
            mlua::Error::CallbackError { cause, .. } => ScriptError::of(cause),
            mlua::Error::BadArgument { cause, .. } => ScriptError::of(cause),
            mlua::Error::ExternalError(external) => external
                .downcast_ref::<ScriptError>()
                .map_or_else(|| ScriptError::plain(external.to_string()), ScriptError::clone),
            mlua::Error::MemoryError(_) => ScriptError::plain("not enough memory"),
            mlua::Error::RuntimeError(text) => ScriptError::plain(text.as_str()),
            other => ScriptError::plain(other.to_string()),
        }
    }

    pub(crate) fn text(&self) -> &[u8] {
        &self.text
    }

    pub(crate) fn is_reply(&self) -> bool {
        self.is_reply
    }

    pub(crate) fn is_stop(&self) -> bool {
        self.is_stop
    }

    pub(crate) fn is_counted(&self) -> bool {
        self.is_counted
    }

    /// Returns the text as an error reply has it: with a code.
    pub(crate) fn into_reply(self) -> Vec<u8> {
        if self.is_reply { self.text } else { [b"ERR ", &self.text[..]].concat() }
    }
}

/// A place in a script's source.
pub(crate) struct Place {
    pub(crate) source: String,
    pub(crate) line: usize,
}

/// Returns the innermost place of the running script.
pub(crate) fn place(lua: &Lua) -> Option<Place> {
    for level in 0.. {
        let place = lua.inspect_stack(level, |debug| {
            let source = debug.source().source.map(|source| source.into_owned());
            let is_script = source.as_deref().is_some_and(|source| source == SCRIPT_NAME);
            debug.current_line().filter(|_| is_script).map(|line| Place { source: SCRIPT_NAME.into(), line })
        })?;
        if place.is_some() {
            return place;
        }
    }
    None
}

/// Returns the line of the script that calls the running library function; `None` if `pcall` or another function does.
fn calling_line(lua: &Lua) -> Option<usize> {
    lua.inspect_stack(1, |debug| {
        let source = debug.source().source;
        debug.current_line().filter(|_| source.is_some_and(|source| source == SCRIPT_NAME))
    })?
}

/// Creates an error that begins with the place of the call, as Lua's own functions raise it.
pub(crate) fn at_place(lua: &Lua, text: &str) -> mlua::Error {
    let text = match calling_line(lua) {
        Some(line) => format!("{}:{line}: {text}", &SCRIPT_NAME[1..]),
        None => text.into(),
    };
    ScriptError::plain(text).into()
}

/// Creates the error of an argument.
pub(crate) fn bad_argument(lua: &Lua, number: usize, function: &str, why: &str) -> mlua::Error {
    let function = if calling_line(lua).is_some() { function } else { "?" };
    at_place(lua, &format!("bad argument #{number} to '{function}' ({why})"))
}

/// Returns the name of a value's type as Lua shows it.
pub(crate) fn type_name(value: Option<&Value>) -> &'static str {
    match value {
        None => "no value",
        Some(Value::Integer(_)) => "number",
        Some(Value::LightUserData(_) | Value::Error(_)) => "userdata",
        Some(value) => value.type_name(),
    }
}
