//! Values that name the put they come from.

use pmem::crc32c;

/// A value that names its key and its put, and has a checksum that fails if any byte belongs to another value.
///
/// ```text
/// +0  key's number   +8  put's number   +16 CRC-32C of the rest   +20 filler
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stamped {
    /// The number of the key.
    pub key: u64,
    /// The number of the put.
    pub put: u64,
}

const HEAD_BYTES: usize = 20;

impl Stamped {
    /// Returns the value, with `filler_bytes` after its head.
    #[must_use]
    pub fn value(self, filler_bytes: usize) -> Vec<u8> {
        let filler = (0..filler_bytes).map(|i| (self.put as u8).wrapping_add(i as u8));
        let mut value = [self.key.to_le_bytes(), self.put.to_le_bytes()].concat();
        value.extend([0; 4]);
        value.extend(filler);
        let checksum = checksum(&value);
        value[16..HEAD_BYTES].copy_from_slice(&checksum.to_le_bytes());
        value
    }

    /// Parses a value; returns `None` if it is torn.
    #[must_use]
    pub fn read(value: &[u8]) -> Option<Stamped> {
        let (words, rest) = (value.get(..16)?, value.get(16..HEAD_BYTES)?);
        let word = |at: usize| u64::from_le_bytes(words[at..at + 8].try_into().expect("eight bytes"));
        (rest == checksum(value).to_le_bytes()).then(|| Stamped { key: word(0), put: word(8) })
    }
}

fn checksum(value: &[u8]) -> u32 {
    crc32c(crc32c(value.len() as u32, &value[..16]), &value[HEAD_BYTES..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mixture_of_two_values_is_torn() {
        let (one, two) = (Stamped { key: 1, put: 7 }, Stamped { key: 1, put: 8 });
        let (mine, others) = (one.value(100), two.value(100));
        assert_eq!((Stamped::read(&mine), Stamped::read(&others)), (Some(one), Some(two)));
        for cut in 9..120 {
            assert_eq!(Stamped::read(&[&mine[..cut], &others[cut..]].concat()), None, "cut at {cut}");
        }
        assert_eq!(Stamped::read(&mine[..119]), None);
        assert_eq!(Stamped::read(b""), None);
    }
}
