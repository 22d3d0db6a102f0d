//! BITFIELD: integers of any width at any bit of a value.

use hikv::Decision;

use super::bits;
use crate::errors::{FixedError, Refusal};
use crate::execution::call::{Call, Function};
use crate::observers::events::STRING;

/// Functions of these commands, by the names of their table rows.
pub(super) const FUNCTIONS: &[(&str, Function)] = functions![bitfield, bitfield_ro];

/// A signed integer of up to 64 bits, or an unsigned one of up to 63.
#[derive(Clone, Copy)]
struct Type {
    is_signed: bool,
    width_bits: u32,
}

#[derive(Clone, Copy)]
enum Overflow {
    Wrap,
    Saturate,
    Fail,
}

#[derive(Clone, Copy)]
enum Verb {
    Get,
    Set(i64),
    Add(i64),
}

struct Step {
    kind: Type,
    offset: u64,
    verb: Verb,
    overflow: Overflow,
}

fn bitfield(call: &mut Call<'_>) -> Result<(), Refusal> {
    let steps = steps_of(call)?;
    let end_bits = steps.iter().filter(|step| !matches!(step.verb, Verb::Get)).map(Step::end_bits).max();
    let Some(end_bits) = end_bits else { return read(call, &steps) };
    let (mut results, mut change_count) = (Vec::new(), 0);
    call.store().update(call.key(1), |old| {
        let mut value = old.unwrap_or_default().to_vec();
        value.resize(value.len().max(end_bits.div_ceil(8) as usize), 0);
        let grows = old.is_none_or(|old| old.len() < value.len());
        (results, change_count) = apply_all(&steps, &mut value, grows);
        if change_count > 0 || grows { Decision::Put(value.into()) } else { Decision::Keep }
    })?;
    // As in Redis, a request whose steps all fail still extends the value, but reports no change.
    if change_count > 0 {
        call.changed_key(change_count, STRING, "setbit", call.session.db, call.argument(1));
    }
    answer(call, &results);
    Ok(())
}

/// Returns the replies to the steps, and the number of changes. A writing step counts if the value `grows` or the
/// integer differs.
fn apply_all(steps: &[Step], value: &mut [u8], grows: bool) -> (Vec<Option<i64>>, u64) {
    let mut change_count = 0;
    let results = steps.iter().map(|step| {
        let old = step.kind.read(value, step.offset);
        let result = step.apply(value);
        let is_written = result.is_some() && !matches!(step.verb, Verb::Get);
        change_count += u64::from(is_written && (grows || step.kind.read(value, step.offset) != old));
        result
    });
    (results.collect(), change_count)
}

fn bitfield_ro(call: &mut Call<'_>) -> Result<(), Refusal> {
    let steps = steps_of(call)?;
    if steps.iter().any(|step| !matches!(step.verb, Verb::Get)) {
        return Err(FixedError::BitfieldReadOnly.into());
    }
    read(call, &steps)
}

fn read(call: &mut Call<'_>, steps: &[Step]) -> Result<(), Refusal> {
    let get = |value: &[u8]| steps.iter().map(|step| Some(step.kind.read(value, step.offset))).collect();
    let results: Option<Vec<Option<i64>>> = call.store().get_part_with(call.key(1), get)?;
    answer(call, &results.unwrap_or_else(|| vec![Some(0); steps.len()]));
    Ok(())
}

fn answer(call: &mut Call<'_>, results: &[Option<i64>]) {
    call.reply.array(results.len());
    for result in results {
        match result {
            Some(number) => call.reply.integer(*number),
            None => call.reply.null_bulk(),
        }
    }
}

fn steps_of(call: &Call<'_>) -> Result<Vec<Step>, Refusal> {
    let (mut steps, mut overflow) = (Vec::new(), Overflow::Wrap);
    let mut arguments = call.request.arguments().skip(1);
    while let Some(name) = arguments.next() {
        let name = name.to_ascii_lowercase();
        let mut next = || arguments.next().ok_or(Refusal::Syntax);
        if name == b"overflow" {
            overflow = match next()?.to_ascii_lowercase().as_slice() {
                b"wrap" => Overflow::Wrap,
                b"sat" => Overflow::Saturate,
                b"fail" => Overflow::Fail,
                _ => return Err(FixedError::BitfieldOverflow.into()),
            };
            continue;
        }
        if !matches!(name.as_slice(), b"get" | b"set" | b"incrby") {
            return Err(Refusal::Syntax);
        }
        let (kind_text, offset_text) = (next()?, next()?);
        let number = if name == b"get" { None } else { Some(next()?) };
        let kind = Type::of(kind_text)?;
        let offset = offset_of(call, offset_text, kind)?;
        let number = number.map(|text| resp::parse_integer(text).ok_or(Refusal::NotAnInteger)).transpose()?;
        let verb = match number {
            None => Verb::Get,
            Some(number) if name == b"set" => Verb::Set(number),
            Some(number) => Verb::Add(number),
        };
        steps.push(Step { kind, offset, verb, overflow });
    }
    Ok(steps)
}

/// Parses an offset; `#N` is the N-th integer of this type.
fn offset_of(call: &Call<'_>, text: &[u8], kind: Type) -> Result<u64, Refusal> {
    match text {
        [b'#', number @ ..] => {
            let number = resp::parse_integer(number).ok_or(FixedError::BitOffset)?;
            let offset = number.checked_mul(i64::from(kind.width_bits)).ok_or(FixedError::BitOffset)?;
            bits::offset_of(call, offset.to_string().as_bytes())
        }
        text => bits::offset_of(call, text),
    }
}

impl Step {
    fn end_bits(&self) -> u64 {
        self.offset + u64::from(self.kind.width_bits)
    }

    /// Returns the reply: the integer read, the old one, or the sum; `None` on overflow with FAIL.
    fn apply(&self, value: &mut [u8]) -> Option<i64> {
        let old = self.kind.read(value, self.offset);
        match self.verb {
            Verb::Get => Some(old),
            Verb::Set(number) => {
                let new = self.kind.fit(self.kind.to_set(number), self.overflow)?;
                self.kind.write(value, self.offset, new);
                Some(old)
            }
            Verb::Add(number) => {
                let new = self.kind.fit(i128::from(old) + i128::from(number), self.overflow)?;
                self.kind.write(value, self.offset, new);
                Some(new)
            }
        }
    }
}

impl Type {
    fn of(text: &[u8]) -> Result<Type, Refusal> {
        let (is_signed, digits) = match text {
            [b'i', digits @ ..] => (true, digits),
            [b'u', digits @ ..] => (false, digits),
            _ => return Err(FixedError::BitfieldType.into()),
        };
        let width = resp::parse_integer(digits).filter(|width| (1..=if is_signed { 64 } else { 63 }).contains(width));
        width.map(|width| Type { is_signed, width_bits: width as u32 }).ok_or_else(|| FixedError::BitfieldType.into())
    }

    /// Returns the number for `SET`, as Redis takes it. For an unsigned type, a negative number stands for the unsigned
    /// number with the same 64 bits. So does, for a signed type of less than 64 bits, a number so small that its
    /// distance from the type's maximum exceeds 64 bits: it saturates to the maximum.
    fn to_set(self, number: i64) -> i128 {
        let max = (1i64 << (self.width_bits - 1)).wrapping_sub(1);
        let is_kept = self.is_signed && (self.width_bits == 64 || max.checked_sub(number).is_some());
        if is_kept { i128::from(number) } else { i128::from(number as u64) }
    }

    /// Bits beyond the value are 0.
    fn read(self, value: &[u8], offset: u64) -> i64 {
        let bit = |at: u64| value.get((at / 8) as usize).is_some_and(|byte| byte >> (7 - at % 8) & 1 != 0);
        let read = (offset..offset + u64::from(self.width_bits)).fold(0u64, |read, at| read << 1 | u64::from(bit(at)));
        let unused_bits = 64 - self.width_bits;
        if self.is_signed { (read << unused_bits) as i64 >> unused_bits } else { read as i64 }
    }

    fn write(self, value: &mut [u8], offset: u64, number: i64) {
        for (at, shift) in (offset..).zip((0..self.width_bits).rev()) {
            let (byte, mask) = (&mut value[(at / 8) as usize], 0x80 >> (at % 8));
            *byte = if number >> shift & 1 != 0 { *byte | mask } else { *byte & !mask };
        }
    }

    /// Converts the number to this type; `None` on overflow with FAIL.
    fn fit(self, number: i128, overflow: Overflow) -> Option<i64> {
        let (min, max) = match self.is_signed {
            true => (-(1i128 << (self.width_bits - 1)), (1i128 << (self.width_bits - 1)) - 1),
            false => (0, (1i128 << self.width_bits) - 1),
        };
        match overflow {
            _ if (min..=max).contains(&number) => Some(number as i64),
            Overflow::Fail => None,
            Overflow::Saturate => Some(number.clamp(min, max) as i64),
            Overflow::Wrap => {
                let unused_bits = 128 - self.width_bits;
                let wrapped = number << unused_bits;
                Some(if self.is_signed { wrapped >> unused_bits } else { (wrapped as u128 >> unused_bits) as i128 }
                    as i64)
            }
        }
    }
}
