//! The elements of a stream, and their values.

use super::StreamId;
use crate::errors::{FixedError, Refusal};

const ENTRY: u8 = 0;
const GROUP: u8 = 1;
const CONSUMER_NAME: u8 = 2;
const CONSUMER: u8 = 3;
const PENDING: u8 = 4;
const OWNED: u8 = 5;

/// Stands for an unknown number of read entries.
const UNKNOWN: u64 = u64::MAX;

/// A consumer group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Group {
    /// The prefix of its consumers and pending entries.
    pub(crate) number: u64,
    /// The last entry that was delivered to it.
    pub(crate) last: StreamId,
    /// The number of entries up to that one, if it is known.
    pub(crate) read_count: Option<u64>,
}

/// A consumer of a group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Consumer {
    pub(crate) number: u64,
    /// The time of its last command, in milliseconds since the Unix epoch.
    pub(crate) seen_ms: u64,
    pub(crate) pending_count: u64,
    pub(crate) name: Vec<u8>,
}

/// The delivery of a pending entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Delivery {
    /// The number of the consumer.
    pub(crate) consumer: u64,
    /// In milliseconds since the Unix epoch.
    pub(crate) time_ms: u64,
    pub(crate) count: u64,
}

fn damaged() -> Refusal {
    FixedError::DamagedCollection.into()
}

fn number(value: &[u8], at: usize) -> Result<u64, Refusal> {
    let bytes = value.get(at..at + 8).ok_or_else(damaged)?;
    Ok(u64::from_le_bytes(bytes.try_into().map_err(|_| damaged())?))
}

fn bytes_of(numbers: &[u64]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

impl Group {
    pub(super) fn of(value: &[u8]) -> Result<Group, Refusal> {
        let last = StreamId::of(number(value, 8)?, number(value, 16)?);
        let read_count = Some(number(value, 24)?).filter(|count| *count != UNKNOWN);
        Ok(Group { number: number(value, 0)?, last, read_count })
    }

    pub(super) fn value(&self) -> Vec<u8> {
        bytes_of(&[self.number, self.last.ms(), self.last.seq(), self.read_count.unwrap_or(UNKNOWN)])
    }
}

impl Consumer {
    pub(super) fn of(consumer: u64, value: &[u8]) -> Result<Consumer, Refusal> {
        let (seen_ms, pending_count) = (number(value, 0)?, number(value, 8)?);
        Ok(Consumer { number: consumer, seen_ms, pending_count, name: value[16..].to_vec() })
    }

    pub(super) fn value(&self) -> Vec<u8> {
        let mut value = bytes_of(&[self.seen_ms, self.pending_count]);
        value.extend_from_slice(&self.name);
        value
    }
}

impl Delivery {
    pub(super) fn of(value: &[u8]) -> Result<Delivery, Refusal> {
        Ok(Delivery { consumer: number(value, 0)?, time_ms: number(value, 8)?, count: number(value, 16)? })
    }

    pub(super) fn value(&self) -> Vec<u8> {
        bytes_of(&[self.consumer, self.time_ms, self.count])
    }

    /// Returns how long ago it was, in milliseconds.
    pub(crate) fn idle_ms(&self, now_ms: u64) -> u64 {
        now_ms.saturating_sub(self.time_ms)
    }
}

/// Appends a field or a value to the value of an entry.
pub(super) fn put_text(value: &mut Vec<u8>, text: &[u8]) {
    // The protocol limits requests to less.
    value.extend((text.len() as u32).to_le_bytes());
    value.extend_from_slice(text);
}

/// Returns the fields of an entry, each followed by its value.
pub(crate) fn texts(mut rest: &[u8]) -> Result<Vec<&[u8]>, Refusal> {
    let mut texts = Vec::new();
    while !rest.is_empty() {
        let (len_bytes, after) = rest.split_first_chunk::<4>().ok_or_else(damaged)?;
        let (text, after) = after.split_at_checked(u32::from_le_bytes(*len_bytes) as usize).ok_or_else(damaged)?;
        texts.push(text);
        rest = after;
    }
    Ok(texts)
}

pub(super) fn entry(id: StreamId) -> Vec<u8> {
    [&[ENTRY][..], &id.bytes()].concat()
}

/// Returns the id at the end of an element.
pub(super) fn id_of(element: &[u8]) -> Result<StreamId, Refusal> {
    let at = element.len().checked_sub(StreamId::BYTES).ok_or_else(damaged)?;
    StreamId::of_bytes(&element[at..]).ok_or_else(damaged)
}

pub(super) fn group(name: &[u8]) -> Vec<u8> {
    [&[GROUP], name].concat()
}

/// Returns the bounds of all groups: the first byte of their elements, and the next one.
pub(super) const GROUPS: ([u8; 1], [u8; 1]) = ([GROUP], [GROUP + 1]);

/// Returns the name of a group's element.
pub(super) fn group_name(element: &[u8]) -> &[u8] {
    element.get(1..).unwrap_or_default()
}

pub(super) fn consumer_name(group: u64, name: &[u8]) -> Vec<u8> {
    [&[CONSUMER_NAME], &group.to_be_bytes()[..], name].concat()
}

pub(super) fn consumer(group: u64, consumer: u64) -> Vec<u8> {
    [&[CONSUMER], &group.to_be_bytes()[..], &consumer.to_be_bytes()].concat()
}

/// Returns the number of a consumer's element.
pub(super) fn number_of(element: &[u8]) -> Result<u64, Refusal> {
    let (_, number) = element.split_last_chunk::<8>().ok_or_else(damaged)?;
    Ok(u64::from_be_bytes(*number))
}

pub(super) fn pending(group: u64, id: StreamId) -> Vec<u8> {
    [&[PENDING], &group.to_be_bytes()[..], &id.bytes()].concat()
}

pub(super) fn owned(group: u64, consumer: u64, id: StreamId) -> Vec<u8> {
    [&[OWNED], &group.to_be_bytes()[..], &consumer.to_be_bytes(), &id.bytes()].concat()
}

/// Returns the number in the value of a consumer's name.
pub(super) fn stored_number(value: &[u8]) -> Result<u64, Refusal> {
    number(value, 0)
}

pub(super) fn number_value(number: u64) -> Vec<u8> {
    bytes_of(&[number])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_round_trip() {
        let group = Group { number: 3, last: StreamId::of(5, 7), read_count: None };
        assert_eq!(Group::of(&group.value()).ok(), Some(group.clone()));
        let group = Group { read_count: Some(9), ..group };
        assert_eq!(Group::of(&group.value()).ok(), Some(group));
        let consumer = Consumer { number: 4, seen_ms: 1, pending_count: 2, name: b"name".to_vec() };
        assert_eq!(Consumer::of(4, &consumer.value()).ok(), Some(consumer));
        let delivery = Delivery { consumer: 4, time_ms: 1, count: 2 };
        assert_eq!(Delivery::of(&delivery.value()).ok(), Some(delivery));
        assert!(Group::of(b"x").is_err() && Consumer::of(1, b"x").is_err() && Delivery::of(b"x").is_err());
        let mut value = Vec::new();
        [&b"field"[..], b""].iter().for_each(|text| put_text(&mut value, text));
        assert_eq!(texts(&value).ok(), Some(vec![&b"field"[..], b""]));
        assert!(texts(&value[1..]).is_err());
    }

    #[test]
    fn order_of_elements_is_order_of_ids() {
        let ids = [StreamId::ZERO, StreamId::of(0, u64::MAX), StreamId::of(1, 0), StreamId::MAX];
        for pair in ids.windows(2) {
            assert!(entry(pair[0]) < entry(pair[1]) && pending(1, pair[0]) < pending(1, pair[1]), "{pair:?}");
            assert_eq!(id_of(&owned(1, 2, pair[0])).ok(), Some(pair[0]));
        }
        assert_eq!(StreamId::of(0, u64::MAX).next(), Some(StreamId::of(1, 0)));
        assert_eq!(StreamId::of(1, 0).previous(), Some(StreamId::of(0, u64::MAX)));
    }
}
