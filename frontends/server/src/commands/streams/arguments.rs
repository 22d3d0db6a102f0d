//! Ids, intervals, streams and groups in requests.

use crate::commands::times;
use crate::errors::{Refusal, StreamError};
use crate::execution::call::Call;
use crate::keyspace::collections::CollectionType;
use crate::keyspace::collections::stream::{Group, Ids, Stream, StreamId, StreamParts};

/// The longest text of an id.
const ID_BYTES_MAX: usize = 127;

/// Parses a number as Redis does, up to a zero byte.
fn number(text: &[u8]) -> Option<u64> {
    let digits = text.trim_ascii_start();
    let digits = digits.strip_prefix(b"+").unwrap_or(digits);
    let is_number = digits.first().is_some_and(u8::is_ascii_digit);
    is_number.then(|| str::from_utf8(digits).ok()?.parse().ok())?
}

/// Parses the two parts of an id; the second one is `None` if there is only the first.
fn parts(text: &[u8]) -> Option<(u64, Option<&[u8]>)> {
    if text.len() > ID_BYTES_MAX {
        return None;
    }
    let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
    match text.iter().position(|byte| *byte == b'-') {
        Some(at) => Some((number(&text[..at])?, Some(&text[at + 1..]))),
        None => Some((number(text)?, None)),
    }
}

fn id_with(text: &[u8], missing: u64) -> Option<StreamId> {
    let (ms, sequence) = parts(text)?;
    Some(StreamId::of(ms, sequence.map_or(Some(missing), number)?))
}

/// Parses an id, whose sequence number may be missing; it is then 0.
pub(super) fn id(text: &[u8]) -> Result<StreamId, Refusal> {
    Ok(id_with(text, 0).ok_or(StreamError::InvalidId)?)
}

/// Parses the ids from argument number `first` on.
pub(super) fn ids(call: &Call<'_>, first: usize) -> Result<Vec<StreamId>, Refusal> {
    (first..call.request.len()).map(|index| id(call.argument(index))).collect()
}

/// The id of a new entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum NewId {
    Given(StreamId),
    /// The next one of this millisecond.
    Within(u64),
    /// The next one of now.
    Now,
}

/// Parses the id of a new entry.
pub(super) fn new_id(text: &[u8]) -> Result<NewId, Refusal> {
    match parts(text) {
        _ if text == b"*" => Ok(NewId::Now),
        Some((ms, Some(b"*"))) => Ok(NewId::Within(ms)),
        _ => id(text).map(NewId::Given),
    }
}

/// Parses an id, or the word for the least or the greatest one.
fn bound(text: &[u8], missing: u64) -> Result<StreamId, Refusal> {
    match text {
        b"-" => Ok(StreamId::ZERO),
        b"+" => Ok(StreamId::MAX),
        text => Ok(id_with(text, missing).ok_or(StreamError::InvalidId)?),
    }
}

/// Parses an id as XGROUP SETID does.
pub(super) fn any_id(text: &[u8]) -> Result<StreamId, Refusal> {
    bound(text, 0)
}

/// Parses the beginning of an interval.
pub(super) fn interval_start(text: &[u8]) -> Result<StreamId, Refusal> {
    match text {
        [b'(', rest @ ..] if !rest.is_empty() => Ok(id(rest)?.next().ok_or(StreamError::IntervalStart)?),
        text => bound(text, 0),
    }
}

/// Parses the ends of an interval.
pub(super) fn interval(start: &[u8], end: &[u8]) -> Result<Ids, Refusal> {
    let first = interval_start(start)?;
    let last = match end {
        [b'(', rest @ ..] if !rest.is_empty() => {
            let end = id_with(rest, u64::MAX).ok_or(StreamError::InvalidId)?;
            end.previous().ok_or(StreamError::IntervalEnd)?
        }
        end => bound(end, u64::MAX)?,
    };
    Ok(Ids { first, last })
}

/// Returns the stream whose key is argument number `index`; `None` if the key does not exist.
pub(super) fn stream<'a>(call: &Call<'a>, index: usize) -> Result<Option<Stream<'a>>, Refusal> {
    Ok(call.collection(index, CollectionType::Stream)?.map(Stream::of))
}

/// Returns the stream and the group of the first two arguments; `None` if one of them does not exist.
pub(super) fn group<'a>(call: &Call<'a>) -> Result<Option<(Stream<'a>, Group)>, Refusal> {
    let Some(stream) = stream(call, 1)? else { return Ok(None) };
    let group = stream.group(call.argument(2))?;
    Ok(group.map(|group| (stream, group)))
}

/// Returns the group of argument number 3, which must exist in the stream of argument number 2.
pub(super) fn group_of(call: &Call<'_>, stream: &Stream<'_>) -> Result<Group, Refusal> {
    let (key, name) = (call.argument(2), call.argument(3));
    let missing = || StreamError::NoGroup { key: key.to_vec(), group: name.to_vec() };
    Ok(stream.group(name)?.ok_or_else(missing)?)
}

/// Returns the refusal of a request whose stream or group does not exist.
pub(super) fn no_group(call: &Call<'_>, key: usize, group: usize) -> Refusal {
    let (key, group) = (call.argument(key).to_vec(), call.argument(group).to_vec());
    StreamError::NoKeyOrGroup { key, group, command: call.entry.command.name }.into()
}

/// Returns the time in milliseconds since the Unix epoch.
pub(super) fn now_ms() -> u64 {
    times::now_ms() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_those_of_redis() {
        for (text, wanted) in [
            ("1-2", Some((1, 2))),
            ("1", Some((1, 0))),
            ("007-+1", Some((7, 1))),
            ("18446744073709551615-18446744073709551615", Some((u64::MAX, u64::MAX))),
            ("18446744073709551616", None),
            ("1-", None),
            ("-1", None),
            ("", None),
            ("1-2-3", None),
            ("1-*", None),
            ("-", None),
            ("x", None),
        ] {
            assert_eq!(id(text.as_bytes()).ok(), wanted.map(|(ms, seq)| StreamId::of(ms, seq)), "{text:?}");
        }
        assert_eq!(new_id(b"5-*").ok(), Some(NewId::Within(5)));
        assert_eq!(new_id(b"*").ok(), Some(NewId::Now));
        assert_eq!(new_id(b"*-1").ok(), None);
    }
}
