//! The `bit` library: operations on 32 bits.

use mlua::{Lua, MultiValue, Table};

use crate::arguments::Args;

const RANGE: f64 = 4_294_967_296.0;

impl Args<'_> {
    fn bits(&self, index: usize) -> mlua::Result<i32> {
        let number = self.number(index)?;
        let wrapped = number.round_ties_even().rem_euclid(RANGE);
        Ok(if wrapped.is_nan() { 0 } else { wrapped as u64 as u32 as i32 })
    }
}

/// Creates the library.
pub(crate) fn library(lua: &Lua) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    let add = |function: &'static str, operate: fn(&Args<'_>) -> mlua::Result<i32>| {
        let call = move |lua: &Lua, values: MultiValue| operate(&Args { lua, function, values });
        table.set(function, lua.create_function(call)?)
    };
    add("tobit", |args| args.bits(0))?;
    add("bnot", |args| Ok(!args.bits(0)?))?;
    add("bswap", |args| Ok(args.bits(0)?.swap_bytes()))?;
    add("band", |args| fold(args, |a, b| a & b))?;
    add("bor", |args| fold(args, |a, b| a | b))?;
    add("bxor", |args| fold(args, |a, b| a ^ b))?;
    add("lshift", |args| Ok(args.bits(0)?.wrapping_shl(args.bits(1)? as u32 & 31)))?;
    add("rshift", |args| Ok((args.bits(0)? as u32).wrapping_shr(args.bits(1)? as u32 & 31) as i32))?;
    add("arshift", |args| Ok(args.bits(0)?.wrapping_shr(args.bits(1)? as u32 & 31)))?;
    add("rol", |args| Ok(args.bits(0)?.rotate_left(args.bits(1)? as u32 & 31)))?;
    add("ror", |args| Ok(args.bits(0)?.rotate_right(args.bits(1)? as u32 & 31)))?;
    let tohex = |lua: &Lua, values: MultiValue| {
        let args = Args { lua, function: "tohex", values };
        let (bits, width) = (args.bits(0)? as u32, if args.values.len() < 2 { 8 } else { args.bits(1)? });
        let digits = if width < 0 { format!("{bits:08X}") } else { format!("{bits:08x}") };
        let width = (width.unsigned_abs() as usize).min(8);
        Ok(digits[8 - width..].to_owned())
    };
    table.set("tohex", lua.create_function(tohex)?)?;
    Ok(table)
}

fn fold(args: &Args<'_>, operate: fn(i32, i32) -> i32) -> mlua::Result<i32> {
    let first = args.bits(0)?;
    (1..args.values.len()).try_fold(first, |sum, index| Ok(operate(sum, args.bits(index)?)))
}
