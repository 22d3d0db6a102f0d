//! The `cjson` library. Its settings last until the end of the script.

mod decoder;
mod encoder;

use std::cell::Cell;
use std::rc::Rc;

use mlua::{LightUserData, Lua, MultiValue, Table, Value};

use crate::arguments::Args;

/// The treatment of NaN and infinity.
#[derive(Clone, Copy, PartialEq, Eq)]
enum InvalidNumbers {
    Refused,
    Accepted,
    Null,
}

#[derive(Clone, Copy)]
pub(crate) struct Settings {
    converts_sparse: bool,
    sparse_ratio: i64,
    sparse_safe: i64,
    encode_depth_max: i64,
    decode_depth_max: i64,
    precision: i64,
    keeps_buffer: bool,
    encoded_invalid: InvalidNumbers,
    decoded_invalid: InvalidNumbers,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            converts_sparse: false,
            sparse_ratio: 2,
            sparse_safe: 10,
            encode_depth_max: 1000,
            decode_depth_max: 1000,
            precision: 14,
            keeps_buffer: true,
            encoded_invalid: InvalidNumbers::Refused,
            decoded_invalid: InvalidNumbers::Accepted,
        }
    }
}

/// The recursion of encoder and decoder ends here, whatever a script has set.
const DEPTH_MAX: i64 = 1000;

type Shared = Rc<Cell<Settings>>;

/// The value that stands for JSON's null.
fn null() -> Value {
    Value::LightUserData(LightUserData(std::ptr::null_mut()))
}

/// Creates the library with these settings.
pub(crate) fn library(lua: &Lua, settings: &Shared) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    table.set("_NAME", "cjson")?;
    table.set("_VERSION", "2.1.0")?;
    table.set("null", null())?;
    let shared = Rc::clone(settings);
    let encode = move |lua: &Lua, values: MultiValue| {
        let args = Args { lua, function: "encode", values };
        if args.values.len() != 1 {
            return Err(args.bad(0, "expected 1 argument"));
        }
        lua.create_string(encoder::encode(lua, &args.value(0), shared.get())?)
    };
    table.set("encode", lua.create_function(encode)?)?;
    let shared = Rc::clone(settings);
    let decode = move |lua: &Lua, values: MultiValue| {
        let args = Args { lua, function: "decode", values };
        if args.values.len() != 1 {
            return Err(args.bad(0, "expected 1 argument"));
        }
        decoder::decode(lua, &args.string(0)?.as_bytes(), shared.get())
    };
    table.set("decode", lua.create_function(decode)?)?;
    table.set("new", lua.create_function(|lua, ()| library(lua, &Shared::default()))?)?;
    let add = |function: &'static str, set: fn(&Args<'_>, &mut Settings) -> mlua::Result<MultiValue>| {
        let shared = Rc::clone(settings);
        let call = move |lua: &Lua, values: MultiValue| {
            let mut changed = shared.get();
            let result = set(&Args { lua, function, values }, &mut changed)?;
            shared.set(changed);
            Ok(result)
        };
        table.set(function, lua.create_function(call)?)
    };
    add("encode_max_depth", |args, settings| {
        let depth = number(args, 0, settings.encode_depth_max, (1, i64::from(i32::MAX)))?;
        settings.encode_depth_max = depth;
        one(Value::Integer(depth))
    })?;
    add("decode_max_depth", |args, settings| {
        let depth = number(args, 0, settings.decode_depth_max, (1, i64::from(i32::MAX)))?;
        settings.decode_depth_max = depth;
        one(Value::Integer(depth))
    })?;
    add("encode_number_precision", |args, settings| {
        settings.precision = number(args, 0, settings.precision, (1, 14))?;
        one(Value::Integer(settings.precision))
    })?;
    add("encode_keep_buffer", |args, settings| {
        settings.keeps_buffer = flag(args, 0, settings.keeps_buffer)?;
        one(Value::Boolean(settings.keeps_buffer))
    })?;
    add("encode_sparse_array", |args, settings| {
        settings.converts_sparse = flag(args, 0, settings.converts_sparse)?;
        settings.sparse_ratio = number(args, 1, settings.sparse_ratio, (0, i64::from(i32::MAX)))?;
        settings.sparse_safe = number(args, 2, settings.sparse_safe, (0, i64::from(i32::MAX)))?;
        Ok(MultiValue::from_vec(vec![
            Value::Boolean(settings.converts_sparse),
            Value::Integer(settings.sparse_ratio),
            Value::Integer(settings.sparse_safe),
        ]))
    })?;
    add("encode_invalid_numbers", |args, settings| {
        settings.encoded_invalid = invalid_numbers(args, settings.encoded_invalid, true)?;
        one(shown(args, settings.encoded_invalid)?)
    })?;
    add("decode_invalid_numbers", |args, settings| {
        settings.decoded_invalid = invalid_numbers(args, settings.decoded_invalid, false)?;
        one(shown(args, settings.decoded_invalid)?)
    })?;
    Ok(table)
}

fn one(value: Value) -> mlua::Result<MultiValue> {
    Ok(MultiValue::from_vec(vec![value]))
}

fn number(args: &Args<'_>, index: usize, now: i64, (min, max): (i64, i64)) -> mlua::Result<i64> {
    let number = args.integer_or(index, now)?;
    if (min..=max).contains(&number) {
        return Ok(number);
    }
    Err(args.bad(index, &format!("expected integer between {min} and {max}")))
}

fn flag(args: &Args<'_>, index: usize, now: bool) -> mlua::Result<bool> {
    match args.value(index) {
        Value::Nil => Ok(now),
        Value::Boolean(flag) => Ok(flag),
        Value::String(word) if *word.as_bytes() == *b"on" => Ok(true),
        Value::String(word) if *word.as_bytes() == *b"off" => Ok(false),
        Value::String(word) => Err(args.bad(index, &format!("invalid option '{}'", word.to_string_lossy()))),
        other => Err(args.bad(index, &format!("string expected, got {}", crate::errors::type_name(Some(&other))))),
    }
}

fn invalid_numbers(args: &Args<'_>, now: InvalidNumbers, may_be_null: bool) -> mlua::Result<InvalidNumbers> {
    match args.value(0) {
        Value::Nil => Ok(now),
        Value::String(word) if may_be_null && *word.as_bytes() == *b"null" => Ok(InvalidNumbers::Null),
        _ => Ok(if flag(args, 0, false)? { InvalidNumbers::Accepted } else { InvalidNumbers::Refused }),
    }
}

fn shown(args: &Args<'_>, invalid: InvalidNumbers) -> mlua::Result<Value> {
    Ok(match invalid {
        InvalidNumbers::Refused => Value::Boolean(false),
        InvalidNumbers::Accepted => Value::Boolean(true),
        InvalidNumbers::Null => Value::String(args.lua.create_string("null")?),
    })
}
