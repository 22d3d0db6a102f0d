//! ```text
//! bytes, 4 | offset of the last entry, 4 | elements, 2 (65,535: unknown)
//! | { length of the entry before | encoding and element } | FF
//! ```

use super::{Damaged, END, Element, array, integer_24, is_counted, take};

const HEADER_BYTES: usize = 10;
/// Announces a length of four bytes.
const LONG: u8 = 0xFE;

/// Reads the elements.
pub(crate) struct Ziplist<'a> {
    rest: &'a [u8],
    len_bytes: usize,
    last_offset: u32,
    count: u16,
    read_count: u64,
    before_bytes: usize,
}

impl<'a> Ziplist<'a> {
    pub(crate) fn of(mut packed: &'a [u8]) -> Result<Ziplist<'a>, Damaged> {
        let len_bytes = packed.len();
        let rest = &mut packed;
        let (total_bytes, last_offset) = (u32::from_le_bytes(array(rest)?), u32::from_le_bytes(array(rest)?));
        let count = u16::from_le_bytes(array(rest)?);
        if total_bytes as usize != len_bytes || rest.last() != Some(&END) {
            return Err(Damaged);
        }
        Ok(Ziplist { rest, len_bytes, last_offset, count, read_count: 0, before_bytes: 0 })
    }

    fn element(&mut self) -> Result<Option<Element<'a>>, Damaged> {
        let offset = self.len_bytes - self.rest.len();
        if self.rest == [END] {
            let last_offset = if self.read_count == 0 { HEADER_BYTES } else { offset - self.before_bytes };
            let is_right = is_counted(self.count, self.read_count) && last_offset == self.last_offset as usize;
            return if is_right { Ok(None) } else { Err(Damaged) };
        }
        let rest = &mut self.rest;
        let before_bytes = match array(rest)? {
            [END] => return Err(Damaged),
            [LONG] => u32::from_le_bytes(array(rest)?) as usize,
            [length] => length.into(),
        };
        let [first] = array(rest)?;
        let element = match first {
            0x00..0x40 => Element::Bytes(take(rest, first.into())?),
            0x40..0x80 => {
                let [second] = array(rest)?;
                Element::Bytes(take(rest, usize::from(first & 0x3F) << 8 | usize::from(second))?)
            }
            0x80 => {
                let len_bytes = u32::from_be_bytes(array(rest)?);
                Element::Bytes(take(rest, len_bytes as usize)?)
            }
            0xC0 => Element::Integer(i16::from_le_bytes(array(rest)?).into()),
            0xD0 => Element::Integer(i32::from_le_bytes(array(rest)?).into()),
            0xE0 => Element::Integer(i64::from_le_bytes(array(rest)?)),
            0xF0 => Element::Integer(integer_24(rest)?),
            0xFE => Element::Integer(i8::from_le_bytes(array(rest)?).into()),
            0xF1..=0xFD => Element::Integer(i64::from(first & 0x0F) - 1),
            _ => return Err(Damaged),
        };
        if before_bytes != self.before_bytes {
            return Err(Damaged);
        }
        self.before_bytes = self.len_bytes - self.rest.len() - offset;
        self.read_count += 1;
        Ok(Some(element))
    }
}

impl<'a> Iterator for Ziplist<'a> {
    type Item = Result<Element<'a>, Damaged>;

    fn next(&mut self) -> Option<Result<Element<'a>, Damaged>> {
        self.element().transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packs entries without the lengths of those before, which are short.
    fn packed(count: u16, entries: &[&[u8]]) -> Vec<u8> {
        let (mut body, mut before_bytes, mut last_offset) = (Vec::new(), 0, HEADER_BYTES);
        for entry in entries {
            last_offset = HEADER_BYTES + body.len();
            body.push(before_bytes);
            body.extend_from_slice(entry);
            before_bytes = entry.len() as u8 + 1;
        }
        let mut packed = (body.len() as u32 + 11).to_le_bytes().to_vec();
        packed.extend((last_offset as u32).to_le_bytes());
        packed.extend(count.to_le_bytes());
        packed.extend(body);
        packed.push(END);
        packed
    }

    fn read(packed: &[u8]) -> Result<Vec<Element<'_>>, Damaged> {
        Ziplist::of(packed)?.collect()
    }

    #[test]
    fn every_encoding_is_read() {
        let middle = "m".repeat(100);
        let middle_entry = [b"\x40\x64", middle.as_bytes()].concat();
        let entries: [(&[u8], Element<'_>); 10] = [
            (b"\x02hi", Element::Bytes(b"hi")),
            (&middle_entry, Element::Bytes(middle.as_bytes())),
            (b"\x80\x00\x00\x00\x03abc", Element::Bytes(b"abc")),
            (b"\xC0\x39\x30", Element::Integer(12_345)),
            (b"\xD0\xFF\xFF\xFF\xFF", Element::Integer(-1)),
            (b"\xE0\x00\x00\x00\x00\x00\x00\x00\x80", Element::Integer(i64::MIN)),
            (b"\xF0\x00\x00\x80", Element::Integer(-8_388_608)),
            (b"\xFE\x80", Element::Integer(-128)),
            (b"\xF1", Element::Integer(0)),
            (b"\xFD", Element::Integer(12)),
        ];
        let bytes: Vec<&[u8]> = entries.iter().map(|(bytes, _)| *bytes).collect();
        let wanted: Vec<Element<'_>> = entries.iter().map(|(_, element)| *element).collect();
        let whole = packed(10, &bytes);
        assert_eq!(read(&whole), Ok(wanted));
        assert_eq!(read(&packed(9, &bytes)), Err(Damaged), "a wrong count");
        assert_eq!(read(&packed(1, &[b"\x83hi"])), Err(Damaged), "an unknown encoding");
        let entry_of_255_bytes = [b"\x40\xFC", &[7; 252][..]].concat();
        assert_eq!(read(&packed(2, &[&entry_of_255_bytes, b"\x00"])), Err(Damaged), "the end before an entry");
        (0..whole.len()).for_each(|end| assert_eq!(read(&whole[..end]), Err(Damaged)));
        let mut changed = whole.clone();
        changed[4] += 1;
        assert_eq!(read(&changed), Err(Damaged), "a wrong offset of the last entry");
        let mut changed = whole;
        changed[14] += 1;
        assert_eq!(read(&changed), Err(Damaged), "a wrong length of the entry before");
    }
}
