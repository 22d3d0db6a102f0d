//! The hashes of Redis before 2.6.
//!
//! ```text
//! fields, 1 (from 254 on: unknown) | { length | field | length | unused, 1 | value | unused bytes } | FF
//! ```

use super::{Damaged, END, array, take};

/// Numbers of fields from this one on are unknown.
const UNKNOWN_COUNT_MIN: u8 = 254;
/// Announces a length of four bytes.
const LONG: u8 = 254;

/// A field and its value.
type Pair<'a> = (&'a [u8], &'a [u8]);

/// Reads fields with their values.
pub(crate) struct Zipmap<'a> {
    rest: &'a [u8],
    count: u8,
    read_count: u64,
}

impl<'a> Zipmap<'a> {
    pub(crate) fn of(mut packed: &'a [u8]) -> Result<Zipmap<'a>, Damaged> {
        let rest = &mut packed;
        let [count] = array(rest)?;
        if rest.last() != Some(&END) {
            return Err(Damaged);
        }
        Ok(Zipmap { rest, count, read_count: 0 })
    }

    fn length(&mut self) -> Result<usize, Damaged> {
        match array(&mut self.rest)? {
            [END] => Err(Damaged),
            [LONG] => Ok(u32::from_le_bytes(array(&mut self.rest)?) as usize),
            [length] => Ok(length.into()),
        }
    }

    fn pair(&mut self) -> Result<Option<Pair<'a>>, Damaged> {
        if self.rest == [END] {
            let is_counted = self.count >= UNKNOWN_COUNT_MIN || u64::from(self.count) == self.read_count;
            return if is_counted { Ok(None) } else { Err(Damaged) };
        }
        let field_bytes = self.length()?;
        let field = take(&mut self.rest, field_bytes)?;
        let (value_bytes, [unused_bytes]) = (self.length()?, array(&mut self.rest)?);
        let value = take(&mut self.rest, value_bytes)?;
        take(&mut self.rest, unused_bytes.into())?;
        self.read_count += 1;
        Ok(Some((field, value)))
    }
}

impl<'a> Iterator for Zipmap<'a> {
    type Item = Result<Pair<'a>, Damaged>;

    fn next(&mut self) -> Option<Self::Item> {
        self.pair().transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_read() {
        let read =
            |packed: &[u8]| Zipmap::of(packed).and_then(|map| map.collect::<Result<Vec<_>, _>>().map(|all| all.len()));
        let two = b"\x02\x03foo\x03\x00bar\x05hello\x05\x02worldxx\xFF";
        let pairs = Zipmap::of(two).expect("a zipmap").collect::<Result<Vec<_>, _>>();
        assert_eq!(pairs, Ok(vec![(&b"foo"[..], &b"bar"[..]), (b"hello", b"world")]));
        assert_eq!(read(b"\x01\xFE\x01\0\0\0a\x00\x00\xFF"), Ok(1));
        assert_eq!(read(b"\x03\x01a\x00\x00\xFF"), Err(Damaged), "a wrong count");
        (0..two.len()).for_each(|end| assert_eq!(read(&two[..end]), Err(Damaged)));
    }
}
