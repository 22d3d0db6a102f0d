//! One value with version and checksum, as `DUMP` and `RESTORE` exchange it.

use crate::crc::crc64;
use crate::error::Error;
use crate::input::Input;
use crate::{Kind, Part, VERSION, VERSION_MAX, value};

const FOOTER_BYTES: usize = 10;

/// Appends version and checksum to a value.
pub fn sealed(mut value: Vec<u8>) -> Vec<u8> {
    value.extend_from_slice(&VERSION.to_le_bytes());
    let crc = crc64(0, &value);
    value.extend_from_slice(&crc.to_le_bytes());
    value
}

/// A payload whose version and checksum are right.
pub struct Payload<'a> {
    value_type: u8,
    value: &'a [u8],
}

impl<'a> Payload<'a> {
    /// Checks version and checksum.
    ///
    /// # Errors
    /// [`Error::Version`], [`Error::Checksum`]; [`Error::CutOff`] if there is no value.
    pub fn of(payload: &'a [u8]) -> Result<Payload<'a>, Error> {
        let cut_off = Error::CutOff { offset: payload.len() as u64 };
        let body_bytes = payload.len().checked_sub(FOOTER_BYTES);
        let Some((body, footer)) = body_bytes.and_then(|at| payload.split_at_checked(at)) else { return Err(cut_off) };
        let Some((version, crc)) = footer.split_first_chunk::<2>() else { return Err(cut_off) };
        let version = u16::from_le_bytes(*version);
        if version > VERSION_MAX {
            return Err(Error::Version { version: version.into() });
        }
        if crc != crc64(0, &payload[..payload.len() - size_of::<u64>()]).to_le_bytes() {
            return Err(Error::Checksum);
        }
        let (value_type, value) = body.split_first().ok_or(cut_off)?;
        Ok(Payload { value_type: *value_type, value })
    }

    /// Returns the type of the value that a payload announces, which may be damaged.
    pub fn announced_kind(payload: &[u8]) -> Option<Kind> {
        payload.first().copied().and_then(Kind::of_type)
    }

    /// Returns the type of the value.
    ///
    /// # Errors
    /// [`Error::Unsupported`]
    pub fn kind(&self) -> Result<Kind, Error> {
        let what = value::name_of(self.value_type);
        Kind::of_type(self.value_type).ok_or(Error::Unsupported { offset: 1, what })
    }

    /// Calls `each` with the parts of the value, none of which has a string of more than `string_bytes_max` bytes.
    ///
    /// # Errors
    /// Those of `each`; [`Error::Malformed`], also if there is no part, or more after the value.
    pub fn read<E: From<Error>>(
        &self,
        string_bytes_max: u64,
        each: impl FnMut(Part) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut input = Input::new(self.value, false, string_bytes_max);
        let count = value::read(&mut input, self.value_type, each)?;
        input.too_long().map_or(Ok(()), Err)?;
        if count == 0 {
            return Err(input.malformed("a collection without elements").into());
        }
        if input.offset() < self.value.len() as u64 {
            return Err(input.malformed("bytes after the value").into());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{put_length, put_score, put_string};

    fn read(payload: &[u8]) -> Result<Vec<Part>, Error> {
        let (mut parts, payload) = (Vec::new(), Payload::of(payload)?);
        payload.kind()?;
        payload.read(1000, |part| {
            parts.push(part);
            Ok::<(), Error>(())
        })?;
        Ok(parts)
    }

    fn restored(value: &[u8]) -> Option<Vec<Part>> {
        read(&sealed(value.to_vec())).ok()
    }

    #[test]
    fn strings_of_all_lengths_are_read() {
        for len in [0, 1, 63, 64, 1000] {
            let string: Vec<u8> = (0..len).map(|at| (at % 251) as u8).collect();
            let mut value = vec![Kind::String.type_byte()];
            put_string(&mut value, &string);
            let mut payload = sealed(value);
            assert!(matches!(read(&payload), Ok(parts) if parts == [Part::String(string)]), "{len}");
            let at = payload.len() / 2;
            payload[at] ^= 1;
            assert!(read(&payload).is_err());
        }
        let mut value = vec![Kind::String.type_byte()];
        put_string(&mut value, &[7; 1001]);
        assert!(matches!(read(&sealed(value)), Err(Error::TooLong { len_bytes: 1001, len_bytes_max: 1000, .. })));
        assert!(matches!(read(b""), Err(Error::CutOff { offset: 0 })));
    }

    #[test]
    fn lengths_have_every_form() {
        for (length, form) in [
            (63, &b"\x3F"[..]),
            (64, b"\x40\x40"),
            (16_383, b"\x7F\xFF"),
            (16_384, b"\x80\x00\x00\x40\x00"),
            (1 << 32, b"\x81\x00\x00\x00\x01\x00\x00\x00\x00"),
        ] {
            let mut out = Vec::new();
            put_length(&mut out, length);
            assert_eq!(out, form);
            assert_eq!(Input::new(form, false, 0).length().ok(), Some(length));
        }
    }

    #[test]
    fn encoded_strings_are_read() {
        let string = |value: &[u8]| restored(value).map(|parts| parts[0].clone());
        let wanted = |text: &str| Some(Part::String(text.into()));
        assert_eq!(string(b"\x00\xC0\x7B"), wanted("123"));
        assert_eq!(string(b"\x00\xC1\x39\x30"), wanted("12345"));
        assert_eq!(string(b"\x00\xC2\xFF\xFF\xFF\xFF"), wanted("-1"));
        assert_eq!(string(b"\x00\xC3\x05\x40\x64\x00a\xE0\x5A\x00"), wanted(&"a".repeat(100)));
        for damaged in [&b"\x00\xC4\x00"[..], b"\x00\x85\x00", b"\x00\xC3\x05\x40\x64\x00a\xE0\x5A\x01", b"\x00", b""] {
            assert_eq!(restored(damaged), None, "{damaged:?}");
        }
        // 2 GiB are announced.
        assert_eq!(restored(b"\x00\x80\x80\x00\x00\x00abc"), None);
        assert_eq!(restored(b"\x00\xC3\x05\x80\x80\x00\x00\x00\x00a\xE0\x5A\x00"), None);
    }

    #[test]
    fn plain_collections_are_read() {
        let mut value = vec![Kind::SortedSet.type_byte()];
        put_length(&mut value, 2);
        for (member, score) in [("a", 1.5), ("b", f64::NEG_INFINITY)] {
            put_string(&mut value, member.as_bytes());
            put_score(&mut value, score);
        }
        let scored = |member: &str, score| Part::Scored(member.into(), score);
        assert_eq!(restored(&value), Some(vec![scored("a", 1.5), scored("b", f64::NEG_INFINITY)]));
        let digits = b"\x03\x03\x01a\x031.5\x01b\xFF\x01c\xFE";
        let wanted = vec![scored("a", 1.5), scored("b", f64::NEG_INFINITY), scored("c", f64::INFINITY)];
        assert_eq!(restored(digits), Some(wanted));
        assert_eq!(restored(b"\x03\x01\x01a\xFD"), None, "no number");
        assert_eq!(restored(b"\x03\x01\x01a\x01x"), None, "no digits");
        assert_eq!(restored(&[&b"\x05\x01\x01a"[..], &f64::NAN.to_le_bytes()].concat()), None, "no number");
        let pair = |field: &str, value: &str| Part::Field(field.into(), value.into());
        assert_eq!(restored(b"\x04\x02\x01a\x01b\x01c\xC0\x07"), Some(vec![pair("a", "b"), pair("c", "7")]));
        assert_eq!(restored(b"\x01\x01\x01a"), Some(vec![Part::Element(b"a".to_vec())]));
        assert_eq!(restored(b"\x02\x01\x01a"), Some(vec![Part::Member(b"a".to_vec())]));
        for kind in [Kind::List, Kind::Set, Kind::Hash, Kind::SortedSet] {
            assert_eq!(restored(&[kind.type_byte(), 0]), None, "no element");
            assert_eq!(restored(&[kind.type_byte(), 1]), None, "cut off");
            assert_eq!(
                restored(&[kind.type_byte(), 0x81, 255, 255, 255, 255, 255, 255, 255, 255]),
                None,
                "a huge count"
            );
        }
        assert_eq!(restored(b"\x01\x01\x01ab"), None, "more after the value");
    }

    #[test]
    fn unsupported_types_are_refused_by_name() {
        for (value_type, name) in [(15, "a stream"), (7, "a value of a module"), (24, "a hash with fields that expire")]
        {
            let refused = read(&sealed(vec![value_type, 0]));
            assert!(matches!(refused, Err(Error::Unsupported { what, .. }) if what == name), "{value_type}");
        }
    }

    #[test]
    fn payloads_of_later_versions_are_read() {
        let of_version = |version: u16| {
            let mut payload = [&b"\x00\x03abc"[..], &version.to_le_bytes()].concat();
            payload.extend_from_slice(&crc64(0, &payload).to_le_bytes());
            read(&payload)
        };
        for version in [1, 9, 10, 11, 12] {
            assert!(matches!(of_version(version), Ok(parts) if parts == [Part::String(b"abc".to_vec())]), "{version}");
        }
        assert!(matches!(of_version(13), Err(Error::Version { version: 13 })));
        let without_checksum = [&b"\x00\x03abc\x0a\x00"[..], &[0; 8]].concat();
        assert!(matches!(read(&without_checksum), Err(Error::Checksum)));
    }
}
