//! Single bits and bit counts: SETBIT, GETBIT, BITCOUNT, BITPOS, BITOP. Bit 0 is the highest of the first byte.

use hikv::Decision;

use super::strings::{places_of, range_of};
use crate::errors::{FixedError, Refusal};
use crate::execution::call::{Call, Function};
use crate::observers::events::{GENERIC, STRING};

/// Functions of these commands, by the names of their table rows.
pub(super) const FUNCTIONS: &[(&str, Function)] = functions![bitcount, bitop, bitpos, getbit, setbit];

/// Parses a bit offset within the maximum value length.
pub(super) fn offset_of(call: &Call<'_>, argument: &[u8]) -> Result<u64, Refusal> {
    let offset = resp::parse_integer(argument).and_then(|offset| u64::try_from(offset).ok());
    let bulk_bytes_max = call.shared.administration.settings.bulk_bytes_max() as u64;
    offset.filter(|offset| offset >> 3 < bulk_bytes_max).ok_or_else(|| FixedError::BitOffset.into())
}

fn bit_of(value: &[u8], offset: u64) -> bool {
    value.get((offset / 8) as usize).is_some_and(|byte| byte >> (7 - offset % 8) & 1 != 0)
}

fn setbit(call: &mut Call<'_>) -> Result<(), Refusal> {
    let offset = offset_of(call, call.argument(2))?;
    let bit = resp::parse_integer(call.argument(3)).filter(|bit| matches!(bit, 0 | 1)).ok_or(FixedError::BitValue)?;
    let (at, mut old, mut is_changed) = ((offset / 8) as usize, false, false);
    call.store().update(call.key(1), |value| {
        let value = value.unwrap_or_default();
        old = bit_of(value, offset);
        is_changed = old != (bit == 1) || value.len() <= at;
        if !is_changed {
            return Decision::Keep;
        }
        let mut value = value.to_vec();
        value.resize(value.len().max(at + 1), 0);
        let mask = 0x80 >> (offset % 8);
        value[at] = if bit == 1 { value[at] | mask } else { value[at] & !mask };
        Decision::Put(value.into())
    })?;
    if is_changed {
        call.changed(STRING, "setbit", 1);
    }
    call.reply.integer(old.into());
    Ok(())
}

fn getbit(call: &mut Call<'_>) -> Result<(), Refusal> {
    let offset = offset_of(call, call.argument(2))?;
    let bit = call.store().get_part_with(call.key(1), |value| bit_of(value, offset))?;
    call.reply.integer(bit.unwrap_or(false).into());
    Ok(())
}

/// Converts two positions to a range within a length. BITCOUNT has no range if both count from the end and cross;
/// BITPOS has one even if both are before the start.
type Within = fn(i64, i64, usize) -> Option<(usize, usize)>;

/// A range of bits, from arguments `index` and `index + 1`, in the unit given after them.
struct BitRange {
    start: i64,
    end: i64,
    is_in_bits: bool,
}

impl BitRange {
    fn of(call: &Call<'_>, index: usize) -> Result<BitRange, Refusal> {
        if call.request.len() > index + 3 {
            return Err(Refusal::Syntax);
        }
        let start = if call.request.len() > index { call.integer(index)? } else { 0 };
        let end = if call.request.len() > index + 1 { call.integer(index + 1)? } else { -1 };
        let is_in_bits = match call.request.len() - index {
            0..=2 => false,
            3 if call.argument(index + 2).eq_ignore_ascii_case(b"bit") => true,
            3 if call.argument(index + 2).eq_ignore_ascii_case(b"byte") => false,
            _ => return Err(Refusal::Syntax),
        };
        Ok(BitRange { start, end, is_in_bits })
    }

    /// Returns the first and last bit, for a value of this length.
    fn bits_of(&self, len_bytes: usize, within: Within) -> Option<(u64, u64)> {
        if self.is_in_bits {
            let (start, end) = within(self.start, self.end, len_bytes * 8)?;
            return Some((start as u64, end as u64));
        }
        let (start, end) = within(self.start, self.end, len_bytes)?;
        Some((start as u64 * 8, end as u64 * 8 + 7))
    }
}

/// As in Redis, a missing key is answered before the range is checked.
fn bitcount(call: &mut Call<'_>) -> Result<(), Refusal> {
    if !call.store().contains(call.key(1))? {
        call.reply.integer(0);
        return Ok(());
    }
    if call.request.len() == 3 {
        return Err(Refusal::Syntax);
    }
    let range = BitRange::of(call, 2)?;
    let count = call.store().get_with(call.key(1), |value| {
        range.bits_of(value.len(), range_of).map_or(0, |(first, last)| count_bits(value, first, last))
    })?;
    call.reply.integer(count.unwrap_or(0) as i64);
    Ok(())
}

/// Returns the byte at `at` with all bits cleared outside bits `first` to `last` of the value.
fn byte_within(value: &[u8], at: u64, first: u64, last: u64) -> u8 {
    let mut byte = value[at as usize];
    if at == first / 8 {
        byte &= 0xFF >> (first % 8);
    }
    if at == last / 8 {
        byte &= !(0x7F >> (last % 8));
    }
    byte
}

fn count_bits(value: &[u8], first: u64, last: u64) -> u64 {
    let ends = [first / 8, last / 8];
    let inner = if ends[1] > ends[0] + 1 { &value[ends[0] as usize + 1..ends[1] as usize] } else { &[] };
    let (words, rest) = inner.as_chunks::<8>();
    let inner_count: u64 = words.iter().map(|word| u64::from(u64::from_ne_bytes(*word).count_ones())).sum();
    let rest_count: u64 = rest.iter().map(|byte| u64::from(byte.count_ones())).sum();
    let end_count = |at: u64| u64::from(byte_within(value, at, first, last).count_ones());
    inner_count + rest_count + end_count(ends[0]) + if ends[1] > ends[0] { end_count(ends[1]) } else { 0 }
}

fn bitpos(call: &mut Call<'_>) -> Result<(), Refusal> {
    let bit = match call.integer(2)? {
        0 => false,
        1 => true,
        _ => return Err(FixedError::BitArgument.into()),
    };
    if !call.store().contains(call.key(1))? {
        call.reply.integer(if bit { -1 } else { 0 });
        return Ok(());
    }
    let has_end = call.request.len() > 4;
    let range = BitRange::of(call, 3)?;
    let place = call.store().get_with(call.key(1), |value| match range.bits_of(value.len(), places_of) {
        None => -1,
        Some((first, last)) => match find_bit(value, bit, first, last) {
            Some(place) => place as i64,
            // All bits beyond the value are 0.
            None if !bit && !has_end => value.len() as i64 * 8,
            None => -1,
        },
    })?;
    call.reply.integer(place.unwrap_or(if bit { -1 } else { 0 }));
    Ok(())
}

fn find_bit(value: &[u8], bit: bool, first: u64, last: u64) -> Option<u64> {
    let without = if bit { 0 } else { 0xFF };
    let mut at = first;
    while at <= last {
        if at.is_multiple_of(8) && value[(at / 8) as usize] == without {
            at += 8;
        } else if bit_of(value, at) == bit {
            return Some(at);
        } else {
            at += 1;
        }
    }
    None
}

fn bitop(call: &mut Call<'_>) -> Result<(), Refusal> {
    let combine: fn(u8, u8) -> u8 = match call.argument(1).to_ascii_lowercase().as_slice() {
        b"and" => |a, b| a & b,
        b"or" => |a, b| a | b,
        b"xor" => |a, b| a ^ b,
        b"not" if call.request.len() != 4 => return Err(FixedError::BitopNot.into()),
        b"not" => |a, _| !a,
        _ => return Err(Refusal::Syntax),
    };
    let mut values = Vec::new();
    for index in 3..call.request.len() {
        values.push(call.store().get(call.key(index))?.unwrap_or_default());
    }
    let len_bytes = values.iter().map(Vec::len).max().unwrap_or(0);
    values.iter_mut().for_each(|value| value.resize(len_bytes, 0));
    let mut values = values.into_iter();
    let mut result = values.next().unwrap_or_default();
    match call.request.len() {
        4 => result.iter_mut().for_each(|byte| {
            *byte = if call.argument(1).eq_ignore_ascii_case(b"not") { combine(*byte, 0) } else { *byte }
        }),
        _ => values
            .for_each(|value| result.iter_mut().zip(value).for_each(|(byte, other)| *byte = combine(*byte, other))),
    }
    store_result(call, &result)?;
    call.reply.integer(len_bytes as i64);
    Ok(())
}

/// Stores the result; an empty result deletes the key.
fn store_result(call: &mut Call<'_>, result: &[u8]) -> Result<(), Refusal> {
    if !result.is_empty() {
        call.put(2, result, hikv::Expiry::NEVER)?;
        call.changed(STRING, "set", 2);
    } else if call.delete(2)? {
        call.changed(GENERIC, "del", 2);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bit_counts_match_a_simple_model() {
        let value: Vec<u8> = (0..40u8).map(|byte| byte.wrapping_mul(37)).collect();
        let bits = value.len() as u64 * 8;
        for first in (0..bits).step_by(3) {
            for last in (first..bits).step_by(5) {
                let within = || first..=last;
                assert_eq!(count_bits(&value, first, last), within().filter(|at| bit_of(&value, *at)).count() as u64);
                for bit in [false, true] {
                    assert_eq!(find_bit(&value, bit, first, last), within().find(|at| bit_of(&value, *at) == bit));
                }
            }
        }
    }
}
