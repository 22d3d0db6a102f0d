//! Reads values of all types and encodings.

use std::io::Read;

use crate::error::Error;
use crate::input::Input;
use crate::packed::{Damaged, Element, IntSet, Listpack, Ziplist, Zipmap};
use crate::{Kind, Part};

pub(crate) const STRING: u8 = 0;
pub(crate) const LIST: u8 = 1;
pub(crate) const SET: u8 = 2;
pub(crate) const ZSET: u8 = 3;
pub(crate) const HASH: u8 = 4;
pub(crate) const ZSET_2: u8 = 5;
pub(crate) const HASH_ZIPMAP: u8 = 9;
pub(crate) const LIST_ZIPLIST: u8 = 10;
pub(crate) const SET_INTSET: u8 = 11;
pub(crate) const ZSET_ZIPLIST: u8 = 12;
pub(crate) const HASH_ZIPLIST: u8 = 13;
pub(crate) const LIST_QUICKLIST: u8 = 14;
pub(crate) const HASH_LISTPACK: u8 = 16;
pub(crate) const ZSET_LISTPACK: u8 = 17;
pub(crate) const LIST_QUICKLIST_2: u8 = 18;
pub(crate) const SET_LISTPACK: u8 = 20;

/// The forms of a node of the second version of quicklists: an element, or a listpack.
const NODE_PLAIN: u64 = 1;
const NODE_PACKED: u64 = 2;

/// Length bytes of scores that have no digits.
const SCORE_NAN: u8 = 253;
const SCORE_INFINITE: u8 = 254;
const SCORE_NEGATIVE_INFINITE: u8 = 255;

/// Reads a value, calls `each` with its parts, and returns their number.
pub(crate) fn read<R: Read, E: From<Error>>(
    input: &mut Input<R>,
    value_type: u8,
    mut each: impl FnMut(Part) -> Result<(), E>,
) -> Result<u64, E> {
    let mut count = 0;
    let mut counted = |part| {
        count += 1;
        each(part)
    };
    match value_type {
        STRING => counted(Part::String(input.string()?))?,
        LIST => {
            for _ in 0..input.length()? {
                counted(Part::Element(input.string()?))?;
            }
        }
        SET => {
            for _ in 0..input.length()? {
                counted(Part::Member(input.string()?))?;
            }
        }
        HASH => {
            for _ in 0..input.length()? {
                counted(Part::Field(input.string()?, input.string()?))?;
            }
        }
        ZSET | ZSET_2 => {
            for _ in 0..input.length()? {
                let member = input.string()?;
                let score = if value_type == ZSET { text_score(input)? } else { f64::from_le_bytes(input.array()?) };
                counted(Part::Scored(member, number(input, score)?))?;
            }
        }
        LIST_QUICKLIST => {
            for _ in 0..input.length()? {
                let node = input.string()?;
                elements(input, Ziplist::of(&node), |element| counted(Part::Element(element.into_string())))?;
            }
        }
        LIST_QUICKLIST_2 => {
            for _ in 0..input.length()? {
                let (form, node) = (input.length()?, input.string()?);
                match form {
                    NODE_PLAIN => counted(Part::Element(node))?,
                    NODE_PACKED => {
                        elements(input, Listpack::of(&node), |element| counted(Part::Element(element.into_string())))?;
                    }
                    _ => return Err(input.malformed("a node of a list in an unknown form").into()),
                }
            }
        }
        _ => packed(input, value_type, counted)?,
    }
    Ok(count)
}

/// Reads a value that is one string.
fn packed<R: Read, E: From<Error>>(
    input: &mut Input<R>,
    value_type: u8,
    mut each: impl FnMut(Part) -> Result<(), E>,
) -> Result<(), E> {
    let Some(kind) = Kind::of_type(value_type) else { return Err(input.unsupported(name_of(value_type)).into()) };
    let packed = &input.string()?;
    match value_type {
        HASH_ZIPMAP => {
            for pair in Zipmap::of(packed).map_err(|Damaged| damaged(input))? {
                let (field, value) = pair.map_err(|Damaged| damaged(input))?;
                each(Part::Field(field.to_vec(), value.to_vec()))?;
            }
            Ok(())
        }
        SET_INTSET => elements(input, IntSet::of(packed), |element| each(Part::Member(element.into_string()))),
        LIST_ZIPLIST | HASH_ZIPLIST | ZSET_ZIPLIST => parts(input, kind, Ziplist::of(packed), each),
        _ => parts(input, kind, Listpack::of(packed), each),
    }
}

/// Reads the parts of a collection whose elements are in a row.
fn parts<'a, R: Read, E: From<Error>>(
    input: &Input<R>,
    kind: Kind,
    packed: Result<impl Iterator<Item = Result<Element<'a>, Damaged>>, Damaged>,
    mut each: impl FnMut(Part) -> Result<(), E>,
) -> Result<(), E> {
    let mut first = None;
    elements(input, packed, |element| {
        let part = match (kind, first.take()) {
            (Kind::Hash | Kind::SortedSet, None) => {
                first = Some(element);
                return Ok(());
            }
            (Kind::Hash, Some(field)) => Part::Field(field.into_string(), element.into_string()),
            (Kind::SortedSet, Some(member)) => Part::Scored(member.into_string(), score_of(input, element)?),
            (Kind::Set, _) => Part::Member(element.into_string()),
            _ => Part::Element(element.into_string()),
        };
        each(part)
    })?;
    if first.is_some() { Err(input.malformed("a field or member without a value").into()) } else { Ok(()) }
}

fn elements<'a, R: Read, E: From<Error>>(
    input: &Input<R>,
    packed: Result<impl Iterator<Item = Result<Element<'a>, Damaged>>, Damaged>,
    mut each: impl FnMut(Element<'a>) -> Result<(), E>,
) -> Result<(), E> {
    for element in packed.map_err(|Damaged| damaged(input))? {
        each(element.map_err(|Damaged| damaged(input))?)?;
    }
    Ok(())
}

fn damaged<R: Read>(input: &Input<R>) -> Error {
    input.malformed("a damaged small collection")
}

/// Reads a score in digits, of the first version of sorted sets.
fn text_score<R: Read>(input: &mut Input<R>) -> Result<f64, Error> {
    Ok(match input.byte()? {
        SCORE_NEGATIVE_INFINITE => f64::NEG_INFINITY,
        SCORE_INFINITE => f64::INFINITY,
        SCORE_NAN => f64::NAN,
        len_bytes => {
            let digits = input.bytes(len_bytes.into())?;
            parsed(&digits).ok_or_else(|| input.malformed("a score that is no number"))?
        }
    })
}

fn score_of<R: Read>(input: &Input<R>, element: Element<'_>) -> Result<f64, Error> {
    match element {
        Element::Integer(score) => Ok(score as f64),
        Element::Bytes(digits) => {
            number(input, parsed(digits).ok_or_else(|| input.malformed("a score that is no number"))?)
        }
    }
}

fn parsed(digits: &[u8]) -> Option<f64> {
    str::from_utf8(digits).ok()?.parse().ok()
}

fn number<R: Read>(input: &Input<R>, score: f64) -> Result<f64, Error> {
    if score.is_nan() { Err(input.malformed("a score that is no number")) } else { Ok(score) }
}

/// Returns the name of a type that is not read.
pub(crate) fn name_of(value_type: u8) -> &'static str {
    match value_type {
        15 | 19 | 21 => "a stream",
        6 | 7 => "a value of a module",
        22..=25 => "a hash with fields that expire",
        _ => "a value of an unknown type",
    }
}
