//! The `struct` library: binary layouts, in the notation of Lua's `struct` 0.2.

use mlua::{Lua, LuaString, MultiValue, Table, Value};

use crate::arguments::Args;
use crate::errors::at_place;
use crate::limits::{check_output, check_result_count};
use crate::numbers::number_of;

const INTEGER_BYTES_MAX: usize = 32;
const ALIGNMENT_MAX: usize = 8;

/// One option of a format with its size.
struct Piece {
    option: u8,
    size: usize,
    /// Bytes before it, which align it.
    padding: usize,
}

/// A format that is read option by option.
struct Format<'a> {
    args: &'a Args<'a>,
    text: LuaString,
    at: usize,
    is_little: bool,
    alignment: usize,
}

impl<'a> Format<'a> {
    fn of(args: &'a Args<'a>) -> mlua::Result<Format<'a>> {
        Ok(Format { args, text: args.string(0)?, at: 0, is_little: cfg!(target_endian = "little"), alignment: 1 })
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn number_or(&mut self, default: usize) -> mlua::Result<usize> {
        let mut number: Option<usize> = None;
        while let Some(digit) = self.peek().filter(u8::is_ascii_digit) {
            self.at += 1;
            let next = number.unwrap_or(0).checked_mul(10).and_then(|sum| sum.checked_add(usize::from(digit - b'0')));
            number = Some(
                next.filter(|next| *next <= i32::MAX as usize)
                    .ok_or_else(|| at_place(self.args.lua, "integral size overflow"))?,
            );
        }
        Ok(number.unwrap_or(default))
    }

    /// Returns the next option with a value or padding; `offset` is where it will be.
    fn next(&mut self, offset: usize) -> mlua::Result<Option<Piece>> {
        while let Some(option) = self.peek() {
            self.at += 1;
            let size = match option {
                b'b' | b'B' | b'x' => 1,
                b'h' | b'H' => 2,
                b'l' | b'L' | b'T' | b'd' => 8,
                b'f' => 4,
                b'c' => self.number_or(1)?,
                b'i' | b'I' => {
                    let size = self.number_or(4)?;
                    if size > INTEGER_BYTES_MAX {
                        let text = format!("integral size {size} is larger than limit of {INTEGER_BYTES_MAX}");
                        return Err(at_place(self.args.lua, &text));
                    }
                    size
                }
                b's' => 0,
                other => {
                    self.control(other)?;
                    continue;
                }
            };
            let unit = size.min(self.alignment);
            let is_aligned = size > 0 && option != b'c' && unit > 1;
            let padding = if is_aligned { (unit - (offset & (unit - 1))) & (unit - 1) } else { 0 };
            return Ok(Some(Piece { option, size, padding }));
        }
        Ok(None)
    }

    fn control(&mut self, option: u8) -> mlua::Result<()> {
        match option {
            b' ' => {}
            b'>' => self.is_little = false,
            b'<' => self.is_little = true,
            b'!' => {
                let alignment = self.number_or(ALIGNMENT_MAX)?;
                if !alignment.is_power_of_two() {
                    let text = format!("alignment {alignment} is not a power of 2");
                    return Err(at_place(self.args.lua, &text));
                }
                self.alignment = alignment;
            }
            other => return Err(self.args.bad(0, &format!("invalid format option '{}'", char::from(other)))),
        }
        Ok(())
    }

    /// Returns the bytes of an integer, or reverses bytes, in the current order.
    fn ordered(&self, mut little: Vec<u8>) -> Vec<u8> {
        if !self.is_little {
            little.reverse();
        }
        little
    }
}

/// Creates the library.
pub(crate) fn library(lua: &Lua) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    let pack = |lua: &Lua, values| lua.create_string(pack(&Args { lua, function: "pack", values })?);
    table.set("pack", lua.create_function(pack)?)?;
    let unpack = |lua: &Lua, values| unpack(&Args { lua, function: "unpack", values });
    table.set("unpack", lua.create_function(unpack)?)?;
    let size = |lua: &Lua, values| size(&Args { lua, function: "size", values });
    table.set("size", lua.create_function(size)?)?;
    Ok(table)
}

fn pack(args: &Args<'_>) -> mlua::Result<Vec<u8>> {
    let (mut format, mut packed, mut index) = (Format::of(args)?, Vec::new(), 1);
    while let Some(Piece { option, size, padding }) = format.next(packed.len())? {
        packed.resize(packed.len() + padding, 0);
        match option {
            b'x' => {
                packed.push(0);
                continue;
            }
            b'f' => packed.extend(format.ordered((args.number(index)? as f32).to_le_bytes().into())),
            b'd' => packed.extend(format.ordered(args.number(index)?.to_le_bytes().into())),
            b'c' | b's' => {
                let text = args.string(index)?;
                let text = text.as_bytes();
                let size = if size == 0 { text.len() } else { size };
                check_output(packed.len() + size)?;
                packed.extend_from_slice(text.get(..size).ok_or_else(|| args.bad(index + 1, "string too short"))?);
                if option == b's' {
                    packed.push(0);
                }
            }
            _ => {
                let number = args.number(index)?;
                let value = if number < 0.0 { number as i64 as u64 } else { number as u64 };
                let mut little = value.to_le_bytes().to_vec();
                little.resize(size, 0);
                packed.extend(format.ordered(little));
            }
        }
        index += 1;
    }
    Ok(packed)
}

fn unpack(args: &Args<'_>) -> mlua::Result<MultiValue> {
    let (mut format, data) = (Format::of(args)?, args.string(1)?);
    let (data, mut values) = (data.as_bytes(), Vec::new());
    let start = args.integer_or(2, 1)?;
    let mut at = usize::try_from(start - 1).map_err(|_| args.bad(2, "offset must be 1 or greater"))?;
    while let Some(Piece { option, size, padding }) = format.next(at)? {
        check_result_count(args.lua, values.len())?;
        at = at.saturating_add(padding);
        let too_short = || args.bad(1, "data string too short");
        let taken =
            |at: usize, size: usize| at.checked_add(size).and_then(|end| data.get(at..end)).ok_or_else(too_short);
        let mut bytes = taken(at, size)?;
        match option {
            b'x' => {}
            b'c' => {
                if size == 0 {
                    let previous = values.pop().and_then(|value: Value| number_of(&value));
                    let previous = previous.ok_or_else(|| at_place(args.lua, "format 'c0' needs a previous size"))?;
                    let size = if previous < 0.0 { usize::MAX } else { previous as usize };
                    bytes = taken(at, size)?;
                }
                values.push(Value::String(args.lua.create_string(bytes)?));
            }
            b's' => {
                let end = data[at..].iter().position(|byte| *byte == 0);
                let end = end.ok_or_else(|| at_place(args.lua, "unfinished string in data"))?;
                values.push(Value::String(args.lua.create_string(&data[at..at + end])?));
                bytes = &data[at..=at + end];
            }
            b'f' => {
                let mut number = [0; 4];
                number.copy_from_slice(&format.ordered(bytes.into()));
                values.push(Value::Number(f32::from_le_bytes(number).into()));
            }
            b'd' => {
                let mut number = [0; 8];
                number.copy_from_slice(&format.ordered(bytes.into()));
                values.push(Value::Number(f64::from_le_bytes(number)));
            }
            option => {
                let little = format.ordered(bytes.into());
                let sum = little.iter().rev().fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte));
                let unused_bits = 64_u32.saturating_sub(8 * size as u32).min(63);
                let number = match option.is_ascii_lowercase() {
                    true => ((sum << unused_bits) as i64 >> unused_bits) as f64,
                    false => sum as f64,
                };
                values.push(Value::Number(number));
            }
        }
        at += bytes.len();
    }
    values.push(Value::Number((at + 1) as f64));
    Ok(MultiValue::from_vec(values))
}

fn size(args: &Args<'_>) -> mlua::Result<usize> {
    let (mut format, mut sum) = (Format::of(args)?, 0_usize);
    while let Some(Piece { option, size, padding }) = format.next(sum)? {
        match option {
            b's' => return Err(args.bad(0, "option 's' has no fixed size")),
            b'c' if size == 0 => return Err(args.bad(0, "option 'c0' has no fixed size")),
            _ => sum = sum.saturating_add(padding + size),
        }
    }
    Ok(sum)
}
