//! The `cmsgpack` library: MessagePack.

use mlua::{Lua, LuaString, MultiValue, Table, Value};

use crate::arguments::Args;
use crate::errors::at_place;
use crate::limits::{check_output, check_result_count};

/// Deeper tables are written as nil, as in Redis.
const DEPTH_MAX: usize = 16;
/// Deeper input is refused: the decoder is recursive.
const INPUT_DEPTH_MAX: usize = 1000;

/// Creates the library.
pub(crate) fn library(lua: &Lua) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    let pack = |lua: &Lua, values: MultiValue| {
        if values.is_empty() {
            return Err(crate::errors::bad_argument(lua, 0, "pack", "MessagePack pack needs input."));
        }
        let mut packed = Vec::new();
        values.iter().try_for_each(|value| encode(value, 0, &mut packed))?;
        lua.create_string(packed)
    };
    table.set("pack", lua.create_function(pack)?)?;
    let unpack = |lua: &Lua, values| {
        let args = Args { lua, function: "unpack", values };
        decode_some(lua, &args.string(0)?, (0, 0))
    };
    table.set("unpack", lua.create_function(unpack)?)?;
    let unpack_one = |lua: &Lua, values| {
        let args = Args { lua, function: "unpack_one", values };
        decode_some(lua, &args.string(0)?, (1, args.integer_or(1, 0)?))
    };
    table.set("unpack_one", lua.create_function(unpack_one)?)?;
    let unpack_limit = |lua: &Lua, values| {
        let args = Args { lua, function: "unpack_limit", values };
        let limit = args.number(1)? as i64;
        decode_some(lua, &args.string(0)?, (limit, args.integer_or(2, 0)?))
    };
    table.set("unpack_limit", lua.create_function(unpack_limit)?)?;
    table.set("_NAME", "cmsgpack")?;
    table.set("_VERSION", "lua-cmsgpack 0.4.0")?;
    Ok(table)
}

fn encode(value: &Value, depth: usize, packed: &mut Vec<u8>) -> mlua::Result<()> {
    check_output(packed.len())?;
    match value {
        Value::Boolean(value) => packed.push(if *value { 0xc3 } else { 0xc2 }),
        Value::Integer(value) => encode_integer(*value, packed),
        Value::Number(value) if value.trunc() == *value && value.abs() < 9.2e18 => {
            encode_integer(*value as i64, packed)
        }
        Value::Number(value) if f64::from(*value as f32) == *value => {
            packed.push(0xca);
            packed.extend((*value as f32).to_be_bytes());
        }
        Value::Number(value) => {
            packed.push(0xcb);
            packed.extend(value.to_be_bytes());
        }
        Value::String(text) => {
            check_output(packed.len() + text.as_bytes().len())?;
            encode_header(text.as_bytes().len(), (0xa0, 31), [Some(0xd9), Some(0xda), Some(0xdb)], packed);
            packed.extend_from_slice(&text.as_bytes());
        }
        Value::Table(table) if depth < DEPTH_MAX => encode_table(table, depth, packed)?,
        _ => packed.push(0xc0),
    }
    Ok(())
}

fn encode_table(table: &Table, depth: usize, packed: &mut Vec<u8>) -> mlua::Result<()> {
    let (mut count, mut is_array, mut key_max) = (0_usize, true, 0_i64);
    table.for_each(|key: Value, _: Value| {
        count += 1;
        match key {
            Value::Integer(key) if key > 0 => key_max = key_max.max(key),
            _ => is_array = false,
        }
        Ok(())
    })?;
    if is_array && key_max == count as i64 {
        encode_header(count, (0x90, 15), [None, Some(0xdc), Some(0xdd)], packed);
        return (1..=count).try_for_each(|index| encode(&table.raw_get::<Value>(index)?, depth + 1, packed));
    }
    encode_header(count, (0x80, 15), [None, Some(0xde), Some(0xdf)], packed);
    table.for_each(|key: Value, value: Value| {
        encode(&key, depth + 1, packed)?;
        encode(&value, depth + 1, packed)
    })
}

/// Writes a length: in the first byte if it is at most `short.1`, otherwise after the byte for its size.
fn encode_header(len: usize, short: (u8, usize), long: [Option<u8>; 3], packed: &mut Vec<u8>) {
    match (len, long) {
        (len, _) if len <= short.1 => packed.push(short.0 | len as u8),
        (0..=0xff, [Some(byte), ..]) => packed.extend([byte, len as u8]),
        (0..=0xffff, [_, Some(byte), _]) => {
            packed.push(byte);
            packed.extend((len as u16).to_be_bytes());
        }
        (_, [.., byte]) => {
            packed.extend(byte);
            packed.extend((len as u32).to_be_bytes());
        }
    }
}

fn encode_integer(value: i64, packed: &mut Vec<u8>) {
    match value {
        -32..=127 => packed.push(value as u8),
        128..=0xff => packed.extend([0xcc, value as u8]),
        -0x80..-32 => packed.extend([0xd0, value as u8]),
        0x100..=0xffff => {
            packed.push(0xcd);
            packed.extend((value as u16).to_be_bytes());
        }
        -0x8000..-0x80 => {
            packed.push(0xd1);
            packed.extend((value as i16).to_be_bytes());
        }
        0x1_0000..=0xffff_ffff => {
            packed.push(0xce);
            packed.extend((value as u32).to_be_bytes());
        }
        -0x8000_0000..-0x8000 => {
            packed.push(0xd2);
            packed.extend((value as i32).to_be_bytes());
        }
        value => {
            packed.push(if value < 0 { 0xd3 } else { 0xcf });
            packed.extend(value.to_be_bytes());
        }
    }
}

/// Decodes at most `limit` values from `offset` on, and returns the next offset before them; all values if both are 0.
fn decode_some(lua: &Lua, input: &LuaString, (limit, offset): (i64, i64)) -> mlua::Result<MultiValue> {
    let input = input.as_bytes();
    if offset < 0 || limit < 0 {
        let text = format!("Invalid request to unpack with offset of {offset} and limit of {}.", input.len());
        return Err(at_place(lua, &text));
    }
    let Some(rest) = input.get(offset as usize..) else {
        let text = format!("Start offset {offset} greater than input length {}.", input.len());
        return Err(at_place(lua, &text));
    };
    let (all, mut values) = (limit == 0 && offset == 0, Vec::new());
    let mut decoder = Decoder { lua, rest };
    while !decoder.rest.is_empty() && (all || values.len() < limit as usize) {
        check_result_count(lua, values.len())?;
        values.push(decoder.value(0)?);
    }
    if !all {
        let next = if decoder.rest.is_empty() { -1 } else { (input.len() - decoder.rest.len()) as i64 };
        values.insert(0, Value::Integer(next));
    }
    Ok(MultiValue::from_vec(values))
}

struct Decoder<'a> {
    lua: &'a Lua,
    rest: &'a [u8],
}

impl<'a> Decoder<'a> {
    fn take(&mut self, len: usize) -> mlua::Result<&'a [u8]> {
        let missing = || at_place(self.lua, "Missing bytes in input.");
        let (taken, rest) = self.rest.split_at_checked(len).ok_or_else(missing)?;
        self.rest = rest;
        Ok(taken)
    }

    fn unsigned(&mut self, len: usize) -> mlua::Result<u64> {
        Ok(self.take(len)?.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
    }

    fn signed(&mut self, len: usize) -> mlua::Result<i64> {
        let unused_bits = 64 - 8 * len as u32;
        Ok((self.unsigned(len)? << unused_bits) as i64 >> unused_bits)
    }

    fn value(&mut self, depth: usize) -> mlua::Result<Value> {
        if depth > INPUT_DEPTH_MAX {
            return Err(at_place(self.lua, "Bad data format in input."));
        }
        let kind = self.take(1)?[0];
        Ok(match kind {
            0..=0x7f => Value::Integer(kind.into()),
            0xe0..=0xff => Value::Integer((kind as i8).into()),
            0xc0 => Value::Nil,
            0xc2 | 0xc3 => Value::Boolean(kind == 0xc3),
            0xca => Value::Number(f32::from_bits(self.unsigned(4)? as u32).into()),
            0xcb => Value::Number(f64::from_bits(self.unsigned(8)?)),
            0xcc..=0xcf => Value::Number(self.unsigned(1 << (kind - 0xcc))? as f64),
            0xd0..=0xd3 => Value::Number(self.signed(1 << (kind - 0xd0))? as f64),
            0xa0..=0xbf => self.string(usize::from(kind & 31))?,
            0xd9..=0xdb => {
                let len = self.unsigned(1 << (kind - 0xd9))? as usize;
                self.string(len)?
            }
            0x90..=0x9f => self.array(usize::from(kind & 15), depth)?,
            0xdc | 0xdd => {
                let count = self.unsigned(2 << (kind - 0xdc))? as usize;
                self.array(count, depth)?
            }
            0x80..=0x8f => self.map(usize::from(kind & 15), depth)?,
            0xde | 0xdf => {
                let count = self.unsigned(2 << (kind - 0xde))? as usize;
                self.map(count, depth)?
            }
            _ => return Err(at_place(self.lua, "Bad data format in input.")),
        })
    }

    fn string(&mut self, len: usize) -> mlua::Result<Value> {
        Ok(Value::String(self.lua.create_string(self.take(len)?)?))
    }

    fn array(&mut self, count: usize, depth: usize) -> mlua::Result<Value> {
        let table = self.lua.create_table()?;
        for index in 1..=count {
            table.raw_set(index, self.value(depth + 1)?)?;
        }
        Ok(Value::Table(table))
    }

    fn map(&mut self, count: usize, depth: usize) -> mlua::Result<Value> {
        let table = self.lua.create_table()?;
        for _ in 0..count {
            let (key, value) = (self.value(depth + 1)?, self.value(depth + 1)?);
            if key.is_nil() || matches!(key, Value::Number(key) if key.is_nan()) {
                return Err(at_place(self.lua, "Bad data format in input."));
            }
            table.raw_set(key, value)?;
        }
        Ok(Value::Table(table))
    }
}
