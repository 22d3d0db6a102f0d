//! The `redis` library.

use std::cell::Cell;
use std::rc::Rc;

use mlua::{Lua, MultiValue, Table, Value};
use resp::{Limits, Protocol, Requests};

use crate::control::Control;
use crate::errors::ScriptError;
use crate::host::{CallError, Host, Level};
use crate::limits::check_output;
use crate::numbers::{general, number_of};
use crate::replies::{error_table, to_lua};
use crate::script::Hash;

/// The version that scripts see.
const VERSION: (&str, i64) = ("7.0.15", 0x0007_000f);
const LEVELS: [(&str, Level); 4] = [
    ("LOG_DEBUG", Level::Debug),
    ("LOG_VERBOSE", Level::Verbose),
    ("LOG_NOTICE", Level::Notice),
    ("LOG_WARNING", Level::Warning),
];
/// There is no replication; scripts may choose anyway.
const REPLICATION: [(&str, i64); 5] =
    [("REPL_NONE", 0), ("REPL_AOF", 1), ("REPL_SLAVE", 2), ("REPL_REPLICA", 2), ("REPL_ALL", 3)];
const NO_ARGUMENT: &str = "ERR Please specify at least one argument for this redis lib call";
const REQUEST_LENGTH: &str = "ERR the arguments of the command exceed the maximum size of a request";
const ARGUMENT_TYPES: &str = "ERR Lua redis lib command arguments must be strings or integers";

/// Creates the library, without the functions that need a host.
pub(crate) fn library(lua: &Lua, protocol: &Rc<Cell<Protocol>>) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    for (index, (name, _)) in LEVELS.iter().enumerate() {
        table.set(*name, index)?;
    }
    REPLICATION.iter().try_for_each(|(name, flags)| table.set(*name, *flags))?;
    table.set("REDIS_VERSION", VERSION.0)?;
    table.set("REDIS_VERSION_NUM", VERSION.1)?;
    table.set("error_reply", lua.create_function(error_reply)?)?;
    table.set("status_reply", lua.create_function(status_reply)?)?;
    table.set("sha1hex", lua.create_function(sha1hex)?)?;
    table.set("replicate_commands", lua.create_function(|_, ()| Ok(true))?)?;
    table.set("set_repl", lua.create_function(set_repl)?)?;
    let shared = Rc::clone(protocol);
    let setresp = move |_: &Lua, values: MultiValue| {
        if values.len() != 1 {
            return Err(ScriptError::reply("ERR redis.setresp() requires one argument.").into());
        }
        shared.set(match number_of(&values[0]) {
            Some(2.0) => Protocol::Resp2,
            Some(3.0) => Protocol::Resp3,
            _ => return Err(ScriptError::reply("ERR RESP version must be 2 or 3.").into()),
        });
        Ok(())
    };
    table.set("setresp", lua.create_function(setresp)?)?;
    Ok(table)
}

/// The state of a run that commands need.
pub(crate) struct Calls<'a> {
    pub(crate) host: &'a mut dyn Host,
    pub(crate) control: &'a Rc<Control>,
    pub(crate) protocol: &'a Cell<Protocol>,
    pub(crate) requests: Requests,
    pub(crate) output: Vec<u8>,
}

impl Calls<'_> {
    /// Executes a command; raises an error if `raises`, otherwise returns it.
    pub(crate) fn call(&mut self, lua: &Lua, values: &MultiValue, raises: bool) -> mlua::Result<Value> {
        let failed = |error: ScriptError| match raises {
            true => Err(error.into()),
            false => Ok(Value::Table(error_table(lua, error.text(), error.is_counted())?)),
        };
        if let Some(stop) = self.control.stopped() {
            return Err(self.control.stop(lua, stop));
        }
        if values.is_empty() {
            return failed(ScriptError::reply(NO_ARGUMENT));
        }
        if let Err(error) = read_words(values, &mut self.requests) {
            return failed(error);
        }
        self.output.clear();
        match self.host.call(self.requests.get(0, &[]), self.protocol.get(), &mut self.output) {
            Ok(()) => {}
            Err(CallError::Refused(text)) => return failed(ScriptError::counted(text)),
            Err(CallError::Stopped(stop)) => return Err(self.control.stop(lua, stop)),
        }
        if raises && self.output.first() == Some(&b'-') {
            let text = self.output[1..].strip_suffix(b"\r\n").unwrap_or(&self.output[1..]);
            return Err(ScriptError::counted(text).into());
        }
        to_lua(lua, &self.output)
    }

    pub(crate) fn is_permitted(&mut self, values: &MultiValue) -> mlua::Result<bool> {
        if values.is_empty() {
            return Err(ScriptError::reply(NO_ARGUMENT).into());
        }
        read_words(values, &mut self.requests)?;
        let unknown = || ScriptError::reply("ERR Invalid command passed to redis.acl_check_cmd()").into();
        self.host.is_permitted(self.requests.get(0, &[])).ok_or_else(unknown)
    }

    pub(crate) fn log(&mut self, values: &MultiValue) -> mlua::Result<()> {
        if values.len() < 2 {
            return Err(ScriptError::reply("ERR redis.log() requires two arguments or more.").into());
        }
        let Some(level) = number_of(&values[0]) else {
            return Err(ScriptError::reply("ERR First argument must be a number (log level).").into());
        };
        let Some((_, level)) = (level >= 0.0).then(|| LEVELS.get(level as usize)).flatten() else {
            return Err(ScriptError::reply("ERR Invalid debug level.").into());
        };
        let mut message = Vec::new();
        for value in values.iter().skip(1) {
            if let Some(word) = Word::of(value) {
                check_output(message.len() + word.as_ref().len())?;
                message.extend_from_slice(word.as_ref());
            }
            message.push(b' ');
        }
        message.pop();
        self.host.log(*level, &message);
        Ok(())
    }
}

/// Reads the words of a request, which must be texts or numbers and not longer than a client's.
fn read_words(values: &MultiValue, requests: &mut Requests) -> Result<(), ScriptError> {
    requests.clear();
    let words: Option<Vec<_>> = values.iter().map(Word::of).collect();
    let words = words.ok_or_else(|| ScriptError::reply(ARGUMENT_TYPES))?;
    if words.iter().map(|word| word.as_ref().len()).sum::<usize>() > Limits::REQUEST_BYTES_MAX {
        return Err(ScriptError::reply(REQUEST_LENGTH));
    }
    requests.push_words(&words);
    Ok(())
}

/// A word of a request.
enum Word {
    Text(mlua::BorrowedBytes),
    Number(String),
}

impl Word {
    fn of(value: &Value) -> Option<Word> {
        match value {
            Value::String(text) => Some(Word::Text(text.as_bytes())),
            Value::Integer(number) => Some(Word::Number(general(*number as f64, 17))),
            Value::Number(number) => Some(Word::Number(general(*number, 17))),
            _ => None,
        }
    }
}

impl AsRef<[u8]> for Word {
    fn as_ref(&self) -> &[u8] {
        match self {
            Word::Text(text) => text,
            Word::Number(text) => text.as_bytes(),
        }
    }
}

/// The only argument, a text.
fn only_text(values: &MultiValue) -> Option<mlua::LuaString> {
    (values.len() == 1).then(|| values[0].as_string().cloned()).flatten()
}

fn wrong_arguments(lua: &Lua) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    table.set("err", "ERR wrong number or type of arguments")?;
    Ok(table)
}

/// As in Redis, a text of one word gets the general code.
fn error_reply(lua: &Lua, values: MultiValue) -> mlua::Result<Table> {
    let Some(text) = only_text(&values) else { return wrong_arguments(lua) };
    let text = text.as_bytes();
    let text = text.strip_prefix(b"-").unwrap_or(&text);
    let table = lua.create_table()?;
    let (code, sentence) = match text.iter().position(|byte| *byte == b' ') {
        Some(end) => (&text[..end], &text[end + 1..]),
        None => (&b"ERR"[..], text),
    };
    let is_end = |byte: &u8| matches!(byte, b'\r' | b'\n');
    let start = sentence.iter().take_while(|byte| is_end(byte)).count();
    let end_len = sentence[start..].iter().rev().take_while(|byte| is_end(byte)).count();
    table.set("err", lua.create_string([code, b" ", &sentence[start..sentence.len() - end_len]].concat())?)?;
    Ok(table)
}

fn status_reply(lua: &Lua, values: MultiValue) -> mlua::Result<Table> {
    let Some(text) = only_text(&values) else { return wrong_arguments(lua) };
    let table = lua.create_table()?;
    table.set("ok", text)?;
    Ok(table)
}

fn sha1hex(lua: &Lua, values: MultiValue) -> mlua::Result<mlua::LuaString> {
    if values.len() != 1 {
        return Err(ScriptError::reply("ERR wrong number of arguments").into());
    }
    let text = lua.coerce_string(values[0].clone())?;
    let hash = text.map_or_else(|| Hash::of(b""), |text| Hash::of(&text.as_bytes()));
    lua.create_string(hash.as_bytes())
}

fn set_repl(_: &Lua, values: MultiValue) -> mlua::Result<()> {
    if values.len() != 1 {
        return Err(ScriptError::reply("ERR redis.set_repl() requires two arguments.").into());
    }
    let flags = number_of(&values[0]).unwrap_or(0.0);
    if (0.0..4.0).contains(&flags) {
        return Ok(());
    }
    let text = "ERR Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE.";
    Err(ScriptError::reply(text).into())
}
