//! Little-endian numbers at their places. A place that is not there reads as 0 and is not written.

pub(crate) fn bytes_at<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).copied().unwrap_or([0; N])
}

pub(crate) fn u8_at(bytes: &[u8], at: usize) -> u8 {
    bytes.get(at).copied().unwrap_or(0)
}

pub(crate) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(bytes_at(bytes, at))
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes_at(bytes, at))
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes_at(bytes, at))
}

pub(crate) fn put(bytes: &mut [u8], at: usize, what: &[u8]) {
    if let Some(place) = bytes.get_mut(at..at + what.len()) {
        place.copy_from_slice(what);
    }
}

/// Two numbers in a row. What is put together of smaller ones, and copied right away, is not waited for so: a processor hands a
/// load what one store has stored, and not what several have.
pub(crate) fn pair([first, second]: [u64; 2]) -> [u8; 16] {
    (u128::from(first) | u128::from(second) << 64).to_le_bytes()
}

/// Text in a field of fixed length, cut if it is longer, with `fill` behind it.
pub(crate) fn put_text(bytes: &mut [u8], at: usize, field_bytes: usize, text: &str, fill: u8) {
    let mut field = vec![fill; field_bytes];
    let len = text.len().min(field_bytes);
    field[..len].copy_from_slice(&text.as_bytes()[..len]);
    put(bytes, at, &field);
}

/// The text of a field that ends at a zero, or with the field; bytes that are no UTF-8 are shown as such.
pub(crate) fn text_of(field: &[u8]) -> String {
    let len = field.iter().position(|byte| *byte == 0).unwrap_or(field.len());
    String::from_utf8_lossy(&field[..len]).trim_end().to_owned()
}
