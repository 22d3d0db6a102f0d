//! ```text
//! bytes of an integer, 4 | integers, 4 | integers, ascending
//! ```

use super::{Damaged, Element, array};

const HEADER_BYTES: u64 = 8;

/// Reads the integers.
pub(crate) struct IntSet<'a> {
    rest: &'a [u8],
    width_bytes: u32,
}

impl<'a> IntSet<'a> {
    pub(crate) fn of(mut packed: &'a [u8]) -> Result<IntSet<'a>, Damaged> {
        let len_bytes = packed.len() as u64;
        let rest = &mut packed;
        let (width_bytes, count) = (u32::from_le_bytes(array(rest)?), u32::from_le_bytes(array(rest)?));
        let is_whole = HEADER_BYTES + u64::from(width_bytes) * u64::from(count) == len_bytes;
        if !matches!(width_bytes, 2 | 4 | 8) || !is_whole {
            return Err(Damaged);
        }
        Ok(IntSet { rest, width_bytes })
    }

    fn element(&mut self) -> Result<Option<Element<'a>>, Damaged> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let rest = &mut self.rest;
        Ok(Some(Element::Integer(match self.width_bytes {
            2 => i16::from_le_bytes(array(rest)?).into(),
            4 => i32::from_le_bytes(array(rest)?).into(),
            _ => i64::from_le_bytes(array(rest)?),
        })))
    }
}

impl<'a> Iterator for IntSet<'a> {
    type Item = Result<Element<'a>, Damaged>;

    fn next(&mut self) -> Option<Result<Element<'a>, Damaged>> {
        self.element().transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(packed: &[u8]) -> Result<Vec<Element<'_>>, Damaged> {
        IntSet::of(packed)?.collect()
    }

    #[test]
    fn integers_of_every_width_are_read() {
        let two = b"\x02\0\0\0\x02\0\0\0\xFF\xFF\x05\0";
        assert_eq!(read(two), Ok(vec![Element::Integer(-1), Element::Integer(5)]));
        assert_eq!(read(b"\x04\0\0\0\x01\0\0\0\x00\x00\x00\x80"), Ok(vec![Element::Integer(i32::MIN.into())]));
        assert_eq!(read(b"\x08\0\0\0\x01\0\0\0\x01\0\0\0\0\0\0\0"), Ok(vec![Element::Integer(1)]));
        assert_eq!(read(b"\x03\0\0\0\x00\0\0\0"), Err(Damaged), "a width that there is not");
        (0..two.len()).for_each(|end| assert_eq!(read(&two[..end]), Err(Damaged)));
    }
}
