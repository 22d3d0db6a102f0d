//! Little-endian numbers at byte offsets. An offset outside the bytes reads as 0 and is not written.

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

/// Combines two numbers. A value that is assembled from smaller stores and copied right after that would stall: a
/// processor forwards to a load the data of one store, but not of several.
pub(crate) fn pair([first, second]: [u64; 2]) -> [u8; 16] {
    (u128::from(first) | u128::from(second) << 64).to_le_bytes()
}

/// Writes text to a field of fixed length, truncated if it is longer, padded with `fill`.
pub(crate) fn put_text(bytes: &mut [u8], at: usize, field_bytes: usize, text: &str, fill: u8) {
    let mut field = vec![fill; field_bytes];
    let len = text.len().min(field_bytes);
    field[..len].copy_from_slice(&text.as_bytes()[..len]);
    put(bytes, at, &field);
}

/// Returns the text of a field, up to a NUL or the field's end; invalid UTF-8 is replaced.
pub(crate) fn text_of(field: &[u8]) -> String {
    let len = field.iter().position(|byte| *byte == 0).unwrap_or(field.len());
    String::from_utf8_lossy(&field[..len]).trim_end().to_owned()
}
