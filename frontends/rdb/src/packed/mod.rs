//! Small collections that are one string: listpacks, ziplists, integer sets and zipmaps.
//!
//! Each is checked while it is read: announced sizes, the lengths by which Redis goes backwards, and the end.

mod intset;
mod listpack;
mod ziplist;
mod zipmap;

pub(crate) use intset::IntSet;
pub(crate) use listpack::Listpack;
pub(crate) use ziplist::Ziplist;
pub(crate) use zipmap::Zipmap;

/// The last byte of all of them except integer sets.
const END: u8 = 0xFF;

/// Stands for a number of elements that is too large for the header of a listpack or ziplist.
const UNKNOWN_COUNT: u16 = u16::MAX;

/// Returns whether the number of elements that were read is that of the header.
fn is_counted(announced_count: u16, read_count: u64) -> bool {
    announced_count == UNKNOWN_COUNT || u64::from(announced_count) == read_count
}

/// An entry that does not have the format.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Damaged;

/// An element.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Element<'a> {
    Bytes(&'a [u8]),
    Integer(i64),
}

impl Element<'_> {
    /// Returns the element as a string.
    pub(crate) fn into_string(self) -> Vec<u8> {
        match self {
            Element::Bytes(bytes) => bytes.to_vec(),
            Element::Integer(number) => number.to_string().into_bytes(),
        }
    }
}

/// Takes bytes from the front.
fn take<'a>(rest: &mut &'a [u8], count: usize) -> Result<&'a [u8], Damaged> {
    let (taken, after) = rest.split_at_checked(count).ok_or(Damaged)?;
    *rest = after;
    Ok(taken)
}

fn array<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N], Damaged> {
    let (taken, after) = rest.split_first_chunk().ok_or(Damaged)?;
    *rest = after;
    Ok(*taken)
}

/// Takes a little-endian integer of three bytes.
fn integer_24(rest: &mut &[u8]) -> Result<i64, Damaged> {
    let [low, middle, high] = array(rest)?;
    Ok((i32::from_le_bytes([0, low, middle, high]) >> 8).into())
}
