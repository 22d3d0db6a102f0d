//! Compressed strings: LZF, which has runs of literal bytes and copies of earlier output.

/// Decompresses; `None` if the input is malformed, or does not have the announced length.
pub(crate) fn decompress(mut input: &[u8], len_bytes: u64) -> Option<Vec<u8>> {
    let mut output = Vec::new();
    while let [control, rest @ ..] = input {
        input = rest;
        let mut take = || input.split_first().map(|(byte, rest)| (input = rest, *byte).1);
        if *control < 32 {
            for _ in 0..=*control {
                output.push(take()?);
            }
        } else {
            let mut length = usize::from(control >> 5);
            if length == 7 {
                length += usize::from(take()?);
            }
            let distance = usize::from(control & 0x1F) << 8 | usize::from(take()?);
            let from = output.len().checked_sub(distance + 1)?;
            (from..from + length + 2).for_each(|at| output.push(output[at]));
        }
        if output.len() as u64 > len_bytes {
            return None;
        }
    }
    (output.len() as u64 == len_bytes).then_some(output)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_and_copies_are_decompressed() {
        // One literal, then 99 copies of it: 7 + 90, and 2 that every copy has.
        assert_eq!(decompress(b"\x00a\xE0\x5A\x00", 100), Some(vec![b'a'; 100]));
        assert_eq!(decompress(b"\x00a\xE0\x5A\x01", 100), None, "a copy from before the output");
        assert_eq!(decompress(b"\x00a\xE0\x5A\x00", 99), None, "longer than announced");
        assert_eq!(decompress(b"\x00a\xE0\x5A\x00", 101), None, "shorter than announced");
        assert_eq!(decompress(b"\x05abc", 6), None, "cut off");
    }
}
