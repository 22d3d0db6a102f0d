//! Limits of memory.
//!
//! Lua counts the memory of values, but not that of an output that a library function makes. A short script could ask
//! for any amount: a table or text may be part of another table, or be an argument, many times.

use mlua::Lua;

use crate::errors::at_place;

/// The memory of all values of a script. Garbage counts until it is collected. A call of a library function may use as
/// much again for its output.
pub(crate) const MEMORY_BYTES_MAX: usize = 256 << 20;
/// Lua accepts no more results of a function.
const RESULT_COUNT_MAX: usize = 8000;

/// Refuses an output of so many bytes.
pub(crate) fn check_output(len_bytes: usize) -> mlua::Result<()> {
    if len_bytes <= MEMORY_BYTES_MAX { Ok(()) } else { Err(mlua::Error::MemoryError("of an output".into())) }
}

/// Refuses another result after `count` ones.
pub(crate) fn check_result_count(lua: &Lua, count: usize) -> mlua::Result<()> {
    if count < RESULT_COUNT_MAX { Ok(()) } else { Err(at_place(lua, "too many results")) }
}
