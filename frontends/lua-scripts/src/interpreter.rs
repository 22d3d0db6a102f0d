//! The interpreter of one thread.
//!
//! Scripts see the globals through a read-only table, and so the libraries (`prelude.lua`). Before each run the few
//! values that a script may change are reset: the protocol version, the seed, the settings of `cjson`. The
//! functions that need the host exist only during a run.

use std::cell::Cell;
use std::collections::HashMap;
use std::rc::Rc;

use mlua::chunk::ChunkMode;
use mlua::{Function, Lua, LuaOptions, MultiValue, RegistryKey, StdLib, Table, Value};
use resp::{Protocol, Reply, Requests};

use crate::cjson::Settings;
use crate::control::{Control, Stop, Watch};
use crate::errors::{Place, SCRIPT_NAME, ScriptError, place};
use crate::host::Host;
use crate::limits::MEMORY_BYTES_MAX;
use crate::random::Random;
use crate::redis::{self, Calls};
use crate::replies::{COUNTED, error_table};
use crate::results::{Results, TooLarge};
use crate::script::{Hash, Script};
use crate::{bits, cjson, messages, random, structs};

/// A script that leaves more memory is followed by a collection of garbage.
const KEPT_BYTES_MAX: usize = 4 << 20;
/// More compiled scripts are forgotten; the server compiles them again when they are used.
const COMPILED_COUNT_MAX: usize = 10_000;
/// If all values together need more before a script is compiled, the compiled scripts are forgotten.
const COMPILED_BYTES_MAX: usize = MEMORY_BYTES_MAX / 4;

/// The arguments of a script.
#[derive(Clone, Copy)]
pub struct Arguments<'a> {
    /// `KEYS`.
    pub keys: &'a [&'a [u8]],
    /// `ARGV`.
    pub values: &'a [&'a [u8]],
}

/// The error of a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// A code and a sentence.
    pub text: Vec<u8>,
    /// The host has counted it: it is the error of a command.
    pub is_counted: bool,
}

/// The end of a run.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The reply was written.
    Replied,
    /// The script has failed, or returned an error.
    Failed(Failure),
    /// The script was stopped; the error for its client.
    Stopped(Stop, Vec<u8>),
}

/// Compiles and runs scripts.
pub struct Interpreter {
    lua: Lua,
    control: Rc<Control>,
    protocol: Rc<Cell<Protocol>>,
    random: Rc<Random>,
    json: Rc<Cell<Settings>>,
    /// The fields of `redis`.
    redis: Table,
    /// The fields of the globals.
    globals: Table,
    /// Calls a function with a handler of errors.
    xpcall: Function,
    /// Handles the errors of a script.
    located: Function,
    /// In the registry, because mlua can keep only about 8000 values otherwise.
    compiled: HashMap<Hash, RegistryKey>,
    /// The memory after the last collection.
    collected_bytes: usize,
    /// Lua's parser does not keep the name of the chunk that it reads.
    _name: mlua::LuaString,
    buffers: (Requests, Vec<u8>),
}

impl Interpreter {
    /// Creates an interpreter.
    ///
    /// # Errors
    /// No memory.
    pub fn new() -> Result<Interpreter, String> {
        Interpreter::create().map_err(|error| error.to_string())
    }

    fn create() -> mlua::Result<Interpreter> {
        let options = LuaOptions::new().catch_rust_panics(false);
        let lua = Lua::new_with(StdLib::STRING | StdLib::TABLE | StdLib::MATH, options)?;
        let (random, json) = (Rc::<Random>::default(), Rc::new(Cell::new(Settings::default())));
        let protocol = Rc::new(Cell::new(Protocol::Resp2));
        let (natives, libraries) = (lua.create_table()?, lua.create_table()?);
        natives.set("flat", lua.create_function(flat)?)?;
        natives.set("plain", lua.create_function(plain)?)?;
        let located = lua.create_function(located)?;
        for name in ["string", "table", "math", "coroutine"] {
            libraries.set(name, lua.globals().get::<Table>(name)?)?;
        }
        random::add(&lua, &libraries.get("math")?, &random)?;
        let redis = redis::library(&lua, &protocol)?;
        libraries.set("redis", &redis)?;
        libraries.set("bit", bits::library(&lua)?)?;
        libraries.set("struct", structs::library(&lua)?)?;
        libraries.set("cjson", cjson::library(&lua, &json)?)?;
        libraries.set("cmsgpack", messages::library(&lua)?)?;
        let prelude = lua.load(include_str!("prelude.lua")).set_name("=prelude");
        let (shown, globals, xpcall): (Table, Table, Function) = prelude.call((libraries, natives))?;
        lua.set_globals(shown)?;
        lua.set_memory_limit(MEMORY_BYTES_MAX)?;
        let _name = lua.create_string(SCRIPT_NAME)?;
        let control = Rc::default();
        let (compiled, buffers) = (HashMap::new(), Default::default());
        Ok(Interpreter {
            lua,
            control,
            protocol,
            random,
            json,
            redis,
            globals,
            xpcall,
            located,
            compiled,
            collected_bytes: 0,
            _name,
            buffers,
        })
    }

    /// Returns whether the script is compiled.
    pub fn has(&self, hash: &Hash) -> bool {
        self.compiled.contains_key(hash)
    }

    /// Compiles a script, which can then be run.
    ///
    /// # Errors
    /// The text of an error reply, without its code: the script's first syntax error.
    pub fn compile(&mut self, script: &Script) -> Result<(), String> {
        if self.compiled.len() >= COMPILED_COUNT_MAX || self.lua.used_memory() > COMPILED_BYTES_MAX {
            self.compiled.clear();
            self.lua.expire_registry_values();
            self.collect();
        }
        let chunk = self.lua.load(&script.text[script.start..]).set_name(SCRIPT_NAME).set_mode(ChunkMode::Text);
        let function = chunk.into_function().map_err(|error| {
            let text = match error {
                mlua::Error::SyntaxError { message, .. } => message,
                other => other.to_string(),
            };
            format!("Error compiling script (new function): {text}")
        })?;
        let kept = self.lua.create_registry_value(function).map_err(|error| error.to_string())?;
        self.compiled.insert(script.hash, kept);
        Ok(())
    }

    /// Returns the memory of all values, and of garbage that was not collected yet.
    pub fn used_bytes(&self) -> usize {
        self.lua.used_memory()
    }

    /// Runs a compiled script and writes its reply, which may add `reply_bytes_max`.
    ///
    /// # Panics
    /// If the script is not compiled.
    pub fn run(
        &mut self,
        hash: &Hash,
        arguments: Arguments<'_>,
        host: &mut dyn Host,
        watch: Rc<dyn Watch>,
        reply: (&mut Reply<'_>, usize),
    ) -> Outcome {
        self.protocol.set(Protocol::Resp2);
        self.random.begin();
        self.json.set(Settings::default());
        let outcome = self.execute(hash, arguments, host, watch, reply);
        if self.lua.used_memory() > self.collected_bytes + KEPT_BYTES_MAX {
            self.collect();
        }
        match (self.control.stopped(), outcome) {
            (Some(stop), Ok(Outcome::Failed(failure))) => Outcome::Stopped(stop, failure.text),
            (Some(stop), _) => Outcome::Stopped(stop, ScriptError::stopped(stop).into_reply()),
            (None, Ok(outcome)) => outcome,
            (None, Err(error)) => Outcome::Failed(failed_outside(hash, &ScriptError::of(&error))),
        }
    }

    fn collect(&mut self) {
        // It fails only if a finalizer fails, and scripts have none.
        let _ = self.lua.gc_collect();
        self.collected_bytes = self.lua.used_memory();
    }

    fn execute(
        &mut self,
        hash: &Hash,
        arguments: Arguments<'_>,
        host: &mut dyn Host,
        watch: Rc<dyn Watch>,
        (reply, reply_bytes_max): (&mut Reply<'_>, usize),
    ) -> mlua::Result<Outcome> {
        self.control.begin(&self.lua, watch)?;
        let script: Function = self.lua.registry_value(&self.compiled[hash])?;
        let texts = |texts: &[&[u8]]| -> mlua::Result<Table> {
            let table = self.lua.create_table_with_capacity(texts.len(), 0)?;
            for (index, text) in texts.iter().enumerate() {
                table.raw_set(index + 1, self.lua.create_string(text)?)?;
            }
            Ok(table)
        };
        self.globals.raw_set("KEYS", texts(arguments.keys)?)?;
        self.globals.raw_set("ARGV", texts(arguments.values)?)?;
        let (requests, output) = std::mem::take(&mut self.buffers);
        let (control, protocol) = (&self.control, &*self.protocol);
        let calls = std::cell::RefCell::new(Calls { host, control, protocol, requests, output });
        let borrowed = || calls.try_borrow_mut().map_err(|_| ScriptError::reply("ERR recursive call"));
        let borrowed = &borrowed;
        let result = self.lua.scope(|scope| {
            let call = scope.create_function(move |lua, values: MultiValue| borrowed()?.call(lua, &values, true))?;
            self.redis.raw_set("call", call)?;
            let pcall = scope.create_function(move |lua, values: MultiValue| borrowed()?.call(lua, &values, false))?;
            self.redis.raw_set("pcall", pcall)?;
            let check = scope.create_function(move |_, values: MultiValue| borrowed()?.is_permitted(&values))?;
            self.redis.raw_set("acl_check_cmd", check)?;
            let log = scope.create_function(move |_, values: MultiValue| borrowed()?.log(&values))?;
            self.redis.raw_set("log", log)?;
            // Without Lua code around it, which would be stopped as well.
            self.xpcall.call::<(bool, Value)>((&script, &self.located))
        });
        let Calls { requests, output, .. } = calls.into_inner();
        let kept_bytes = requests.capacity_bytes() + output.capacity();
        self.buffers = if kept_bytes > KEPT_BYTES_MAX { Default::default() } else { (requests, output) };
        let (is_done, value) = result?;
        if !is_done {
            return Ok(Outcome::Failed(failure(hash, &value)));
        }
        if let Some(failure) = returned(&value) {
            return Ok(Outcome::Failed(failure));
        }
        let end_max = reply.len_bytes().saturating_add(reply_bytes_max);
        let mut results = Results { reply, script_protocol: self.protocol.get(), end_max };
        Ok(match results.write(&value, 0) {
            Ok(()) => Outcome::Replied,
            Err(TooLarge(text)) => Outcome::Failed(Failure { text: text.into(), is_counted: false }),
        })
    }
}

/// Returns the error that a script has returned as its result.
fn returned(value: &Value) -> Option<Failure> {
    let table = value.as_table()?;
    let text = table.raw_get::<Value>("err").ok()?.as_string()?.as_bytes().to_vec();
    Some(Failure { text, is_counted: table.raw_get(COUNTED).unwrap_or(false) })
}

/// Returns the error of a failed script, given the one that `located` has made.
fn failure(hash: &Hash, problem: &Value) -> Failure {
    let Value::Table(problem) = problem else {
        return failed_outside(hash, &of_value(problem));
    };
    let text = problem.raw_get::<mlua::LuaString>("err").map(|text| text.as_bytes().to_vec()).unwrap_or_default();
    let (source, line) = (problem.raw_get::<String>("source"), problem.raw_get::<i64>("line"));
    let place = match (source, line) {
        (Ok(source), Ok(line)) => format!(" script: {hash}, on {source}:{line}."),
        _ => String::new(),
    };
    Failure { text: [&text[..], place.as_bytes()].concat(), is_counted: problem.raw_get(COUNTED).unwrap_or(false) }
}

/// Returns the error of a script that failed without reaching its handler of errors, such as without memory.
fn failed_outside(hash: &Hash, error: &ScriptError) -> Failure {
    let text = [format!("ERR Error running script {hash}, ").as_bytes(), error.text()].concat();
    Failure { text, is_counted: false }
}

/// Returns the error for a value that a script has raised.
fn of_value(problem: &Value) -> ScriptError {
    let text = |text: &[u8]| ScriptError::of(&mlua::Error::runtime(String::from_utf8_lossy(text)));
    match problem {
        Value::Error(error) => ScriptError::of(error),
        Value::String(raised) => text(&raised.as_bytes()),
        other => text(other.to_string().unwrap_or_default().as_bytes()),
    }
}

/// Returns an error as `pcall` returns it: as a text if it has one.
fn flat(lua: &Lua, problem: Value) -> mlua::Result<Value> {
    match &problem {
        Value::Error(error) => Ok(Value::String(lua.create_string(ScriptError::of(error).text())?)),
        Value::Table(table) => match table.raw_get::<Value>("err")? {
            text @ Value::String(_) => Ok(text),
            _ => Ok(problem),
        },
        _ => Ok(problem),
    }
}

/// Returns an error as the handler of `xpcall` receives it: a table if a command has failed. Also returns whether the
/// script must end.
fn plain(lua: &Lua, problem: Value) -> mlua::Result<(Value, bool)> {
    let Value::Error(error) = &problem else { return Ok((problem, false)) };
    let error = ScriptError::of(error);
    let shown = match error.is_reply() {
        true => Value::Table(error_table(lua, error.text(), error.is_counted())?),
        false => Value::String(lua.create_string(error.text())?),
    };
    Ok((shown, error.is_stop()))
}

/// Returns the text of an error of Lua; a place in the prelude becomes the place in the script that has called it.
fn replaced(lua: &Lua, text: &[u8]) -> Vec<u8> {
    let rest = text.strip_prefix(b"prelude:").and_then(|rest| rest.splitn(2, |byte| *byte == b' ').nth(1));
    match (rest, place(lua)) {
        (Some(rest), Some(Place { source, line })) => {
            [format!("{}:{line}: ", source.trim_start_matches('@')).as_bytes(), rest].concat()
        }
        _ => text.into(),
    }
}

/// Handles the error of a script: returns a table with the text and the place.
fn located(lua: &Lua, problem: Value) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    let text = match &problem {
        Value::Error(error) => {
            let error = ScriptError::of(error);
            table.raw_set(COUNTED, error.is_counted())?;
            error.into_reply()
        }
        Value::Table(raised) => {
            table.raw_set(COUNTED, raised.raw_get::<Value>(COUNTED)?)?;
            match raised.raw_get::<Value>("err")? {
                Value::String(text) => text.as_bytes().to_vec(),
                _ => b"ERR unknown error".into(),
            }
        }
        Value::String(text) => [b"ERR ", &replaced(lua, &text.as_bytes())[..]].concat(),
        Value::Nil => b"ERR nil".into(),
        other => [b"ERR ", other.to_string()?.as_bytes()].concat(),
    };
    table.raw_set("err", lua.create_string(text)?)?;
    if let Some(Place { source, line }) = place(lua) {
        table.raw_set("source", source)?;
        table.raw_set("line", line)?;
    }
    Ok(table)
}
