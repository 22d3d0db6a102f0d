//! ```text
//! bytes, 4 | elements, 2 (65,535: unknown) | { encoding and element | their length, 1 to 5 } | FF
//! ```

use super::{Damaged, END, Element, array, integer_24, is_counted, take};

/// Reads the elements.
pub(crate) struct Listpack<'a> {
    rest: &'a [u8],
    count: u16,
    read_count: u64,
}

impl<'a> Listpack<'a> {
    pub(crate) fn of(mut packed: &'a [u8]) -> Result<Listpack<'a>, Damaged> {
        let len_bytes = packed.len() as u64;
        let rest = &mut packed;
        let (total_bytes, count) = (u32::from_le_bytes(array(rest)?), u16::from_le_bytes(array(rest)?));
        if u64::from(total_bytes) != len_bytes || rest.last() != Some(&END) {
            return Err(Damaged);
        }
        Ok(Listpack { rest, count, read_count: 0 })
    }

    fn element(&mut self) -> Result<Option<Element<'a>>, Damaged> {
        if self.rest == [END] {
            return if is_counted(self.count, self.read_count) { Ok(None) } else { Err(Damaged) };
        }
        let rest = &mut self.rest;
        let before_bytes = rest.len();
        let [first] = array(rest)?;
        let element = match first {
            0x00..0x80 => Element::Integer(first.into()),
            0x80..0xC0 => Element::Bytes(take(rest, (first & 0x3F).into())?),
            0xC0..0xE0 => {
                let [second] = array(rest)?;
                let number = i64::from(first & 0x1F) << 8 | i64::from(second);
                // 13 bits with a sign.
                Element::Integer(if number >= 1 << 12 { number - (1 << 13) } else { number })
            }
            0xE0..0xF0 => {
                let [second] = array(rest)?;
                Element::Bytes(take(rest, usize::from(first & 0x0F) << 8 | usize::from(second))?)
            }
            0xF0 => {
                let len_bytes = u32::from_le_bytes(array(rest)?);
                Element::Bytes(take(rest, len_bytes as usize)?)
            }
            0xF1 => Element::Integer(i16::from_le_bytes(array(rest)?).into()),
            0xF2 => Element::Integer(integer_24(rest)?),
            0xF3 => Element::Integer(i32::from_le_bytes(array(rest)?).into()),
            0xF4 => Element::Integer(i64::from_le_bytes(array(rest)?)),
            _ => return Err(Damaged),
        };
        let entry_bytes = before_bytes - rest.len();
        take_back_length(rest, entry_bytes)?;
        self.read_count += 1;
        Ok(Some(element))
    }
}

/// Takes the length of an entry, in groups of seven bits. All but the first have the highest bit set.
fn take_back_length(rest: &mut &[u8], entry_bytes: usize) -> Result<(), Damaged> {
    let group_count = match entry_bytes {
        0..0x80 => 1,
        // As in Redis, the largest length of each number of groups has one more.
        0x80..0x3FFF => 2,
        0x3FFF..0x1F_FFFF => 3,
        0x1F_FFFF..0xFFF_FFFF => 4,
        _ => 5,
    };
    let stored = take(rest, group_count)?;
    for (index, byte) in stored.iter().enumerate() {
        let group = (entry_bytes >> (7 * (group_count - 1 - index))) as u8 & 0x7F;
        if *byte != if index == 0 { group } else { group | 0x80 } {
            return Err(Damaged);
        }
    }
    Ok(())
}

impl<'a> Iterator for Listpack<'a> {
    type Item = Result<Element<'a>, Damaged>;

    fn next(&mut self) -> Option<Result<Element<'a>, Damaged>> {
        self.element().transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::super::UNKNOWN_COUNT;
    use super::*;

    fn packed(count: u16, entries: &[&[u8]]) -> Vec<u8> {
        let body = entries.concat();
        let mut packed = (body.len() as u32 + 7).to_le_bytes().to_vec();
        packed.extend(count.to_le_bytes());
        packed.extend(body);
        packed.push(END);
        packed
    }

    fn read(packed: &[u8]) -> Result<Vec<Element<'_>>, Damaged> {
        Listpack::of(packed)?.collect()
    }

    #[test]
    fn every_encoding_is_read() {
        let middle = "m".repeat(100);
        let long = "l".repeat(5000);
        let middle_entry = [b"\xE0\x64", middle.as_bytes(), b"\x66"].concat();
        // 5,005 bytes are 39 times 128 and 13.
        let long_entry = [b"\xF0\x88\x13\x00\x00", long.as_bytes(), &[39, 13 | 0x80]].concat();
        let entries: [(&[u8], Element<'_>); 10] = [
            (b"\x7F\x01", Element::Integer(127)),
            (b"\x82hi\x03", Element::Bytes(b"hi")),
            (b"\xCF\xFF\x02", Element::Integer(4095)),
            (b"\xDF\xFF\x02", Element::Integer(-1)),
            (b"\xF1\x00\x80\x03", Element::Integer(-32_768)),
            (b"\xF2\xFF\xFF\x7F\x04", Element::Integer(8_388_607)),
            (b"\xF2\xFE\xFF\xFF\x04", Element::Integer(-2)),
            (b"\xF4\x00\x00\x00\x00\x00\x00\x00\x80\x09", Element::Integer(i64::MIN)),
            (&middle_entry, Element::Bytes(middle.as_bytes())),
            (&long_entry, Element::Bytes(long.as_bytes())),
        ];
        let bytes: Vec<&[u8]> = entries.iter().map(|(bytes, _)| *bytes).collect();
        let wanted: Vec<Element<'_>> = entries.iter().map(|(_, element)| *element).collect();
        assert_eq!(read(&packed(10, &bytes)), Ok(wanted.clone()));
        assert_eq!(read(&packed(UNKNOWN_COUNT, &bytes)), Ok(wanted));
        assert_eq!(read(&packed(9, &bytes)), Err(Damaged), "a wrong count");
        assert_eq!(read(&packed(1, &[b"\x82hi\x04"])), Err(Damaged), "a wrong length");
        assert_eq!(read(&packed(1, &[b"\x83hi\x03"])), Err(Damaged), "an entry across the end");
        assert_eq!(read(&packed(1, &[b"\xF5\x01"])), Err(Damaged), "an unknown encoding");
        let cut_off = packed(1, &[b"\x82hi\x03"]);
        (0..cut_off.len()).for_each(|end| assert_eq!(read(&cut_off[..end]), Err(Damaged)));
    }
}
