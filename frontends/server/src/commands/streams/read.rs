//! XREAD and XREADGROUP.

use std::ops::Range;
use std::time::{Duration, Instant};

use resp::{Protocol, Requests};

use super::deliver::{Delivered, Deliveries, Terms};
use super::{arguments, replies};
use crate::errors::{FixedError, Refusal, StreamError};
use crate::execution::call::{Call, Function};
use crate::execution::gathered::Gathered;
use crate::keyspace::collections::CollectionType;
use crate::keyspace::collections::stream::{Ids, StreamId, StreamParts, texts};
use crate::observers::events::STREAM;

pub(in crate::commands) const FUNCTIONS: &[(&str, Function)] = functions![xread, xreadgroup];

/// The number of entries that a client gets that has waited, unless it says another one.
const WAITED_COUNT_MAX: u64 = 1000;

/// The options and the streams of a request.
struct Reading {
    /// 0 if there is no limit.
    count_max: u64,
    /// Whether the client waits, and until when.
    waits: Option<Option<Instant>>,
    /// The index of the group's name, before that of the consumer.
    group: Option<usize>,
    is_acknowledged: bool,
    /// The indices of the keys, before as many ids.
    keys: Range<usize>,
}

/// Parses a time to wait in milliseconds, and returns when it ends; `None` for 0, which means never.
fn deadline_of(argument: &[u8]) -> Result<Option<Instant>, Refusal> {
    let ms = resp::parse_integer(argument).ok_or(FixedError::TimeoutNotAnInteger)?;
    let ms = u64::try_from(ms).map_err(|_| FixedError::Timeout)?;
    if ms > i64::MAX as u64 - arguments::now_ms() {
        return Err(FixedError::TimeoutRange.into());
    }
    // A time that the clock cannot represent never comes.
    Ok(if ms == 0 { None } else { Instant::now().checked_add(Duration::from_millis(ms)) })
}

impl Reading {
    fn of(call: &Call<'_>, is_of_group: bool) -> Result<Reading, Refusal> {
        let mut reading = Reading { count_max: 0, waits: None, group: None, is_acknowledged: false, keys: 0..0 };
        let mut index = 1;
        while index < call.request.len() {
            let has_more = |count: usize| index + count < call.request.len();
            match call.argument(index).to_ascii_lowercase().as_slice() {
                b"block" if has_more(1) => {
                    if call.pending.is_some() && !call.session.is_executing {
                        return Err(StreamError::block_in_script(call.request.name()).into());
                    }
                    reading.waits = Some(deadline_of(call.argument(index + 1))?);
                    index += 2;
                }
                b"count" if has_more(1) => {
                    reading.count_max = call.integer(index + 1)?.max(0) as u64;
                    index += 2;
                }
                b"streams" if has_more(1) => {
                    let count = call.request.len() - index - 1;
                    if !count.is_multiple_of(2) {
                        return Err(StreamError::Unbalanced.into());
                    }
                    reading.keys = index + 1..index + 1 + count / 2;
                    break;
                }
                b"group" if has_more(2) => {
                    if !is_of_group {
                        return Err(StreamError::GroupOfXread.into());
                    }
                    reading.group = Some(index + 1);
                    index += 3;
                }
                b"noack" => {
                    if !is_of_group {
                        return Err(StreamError::NoackOfXread.into());
                    }
                    reading.is_acknowledged = true;
                    index += 1;
                }
                _ => return Err(Refusal::Syntax),
            }
        }
        if reading.keys.is_empty() {
            return Err(Refusal::Syntax);
        }
        if is_of_group && reading.group.is_none() {
            return Err(StreamError::NoGroupOption.into());
        }
        if call.is_repeated() && reading.count_max == 0 {
            reading.count_max = WAITED_COUNT_MAX;
        }
        Ok(reading)
    }

    /// Returns the index of the id of a key.
    fn id_of(&self, key: usize) -> usize {
        key + self.keys.len()
    }

    /// Returns the keys that the request uses now.
    fn tried<'r>(&'r self, call: &'r Call<'_>) -> impl Iterator<Item = usize> + use<'r> {
        self.keys.clone().filter(|key| call.is_tried(call.argument(*key)))
    }

    /// Has the client wait, or answers that there is nothing.
    fn wait_or_answer(&self, call: &mut Call<'_>, request: Option<Requests>) {
        match self.waits {
            Some(deadline) if call.wait(request, CollectionType::Stream, self.keys.clone(), deadline) => {}
            _ => call.reply.null_array(),
        }
    }
}

/// Entries of a key, by its index.
type Found = (usize, Vec<Delivered>);

/// Replies with the entries of each stream.
fn answer(call: &mut Call<'_>, found: &[Found]) -> Result<(), Refusal> {
    let is_map = call.reply.protocol() == Protocol::Resp3;
    if is_map {
        call.reply.map(found.len());
    } else {
        call.reply.array(found.len());
    }
    for (key, entries) in found {
        if !is_map {
            call.reply.array(2);
        }
        call.reply.bulk(call.argument(*key));
        call.reply.array(entries.len());
        for (id, value) in entries {
            let texts = value.as_deref().map(texts).transpose()?;
            replies::write_entry(&mut call.reply, *id, texts.as_deref());
        }
    }
    Ok(())
}

fn xread(call: &mut Call<'_>) -> Result<(), Refusal> {
    let reading = Reading::of(call, false)?;
    let mut wanted = Vec::new();
    for key in reading.tried(call) {
        let stream = match arguments::stream(call, key) {
            Err(Refusal::Fixed(FixedError::WrongType)) if call.is_repeated() => None,
            found => found?,
        };
        let after = match call.argument(reading.id_of(key)) {
            b"$" => stream.as_ref().map_or(StreamId::ZERO, |stream| stream.state().last),
            b">" => return Err(StreamError::NewIdWithoutGroup.into()),
            id => arguments::id(id)?,
        };
        wanted.push((key, stream, after));
    }
    let (mut gathered, mut found) = (Gathered::of(call), Vec::new());
    for (key, stream, after) in &wanted {
        let entries = match (stream, after.next()) {
            (Some(stream), Some(first)) if stream.state().last >= first => {
                replies::read(&mut gathered, stream, Ids::from(first), reading.count_max, false)?
            }
            _ => Vec::new(),
        };
        if !entries.is_empty() {
            found.push((*key, entries.into_iter().map(|(id, value)| (id, Some(value))).collect()));
        }
    }
    if !found.is_empty() {
        return answer(call, &found);
    }
    let request = (!call.is_repeated()).then(|| {
        // A client that waits for what comes after the last entry waits for what comes after this one.
        let mut words: Vec<Vec<u8>> = (0..call.request.len()).map(|index| call.argument(index).to_vec()).collect();
        for (key, _, after) in &wanted {
            words[reading.id_of(*key)] = after.to_string().into_bytes();
        }
        let mut request = Requests::default();
        request.push_words(&words);
        request
    });
    reading.wait_or_answer(call, request);
    Ok(())
}

fn xreadgroup(call: &mut Call<'_>) -> Result<(), Refusal> {
    let reading = Reading::of(call, true)?;
    let name = reading.group.unwrap_or_default();
    let mut wanted = Vec::new();
    for key in reading.tried(call) {
        let stream = match arguments::stream(call, key) {
            Ok(None) | Err(Refusal::Fixed(FixedError::WrongType)) if call.is_repeated() => {
                return Err(StreamError::KeyGone.into());
            }
            found => found?,
        };
        let group = stream.as_ref().map_or(Ok(None), |stream| stream.group(call.argument(name)))?;
        let Some(stream) = stream.filter(|_| group.is_some()) else {
            let is_repeated = call.is_repeated();
            return Err(if is_repeated { StreamError::GroupGone.into() } else { arguments::no_group(call, key, name) });
        };
        let after = match call.argument(reading.id_of(key)) {
            b"$" => return Err(StreamError::LastIdOfGroup.into()),
            b">" => None,
            id => Some(arguments::id(id)?),
        };
        wanted.push((key, stream, after));
    }
    let terms = Terms {
        group: call.argument(name),
        consumer: call.argument(name + 1),
        count_max: reading.count_max,
        is_acknowledged: reading.is_acknowledged,
    };
    let (mut deliveries, mut found) = (Deliveries::of(call, terms), Vec::new());
    for (key, stream, after) in &wanted {
        let named = (*key, call.argument(*key));
        let entries = match after {
            None => deliveries.deliver_new(named, stream)?,
            Some(after) => Some(deliveries.deliver_again(named, stream, *after)?),
        };
        found.extend(entries.map(|entries| (*key, entries)));
    }
    if found.is_empty() {
        reading.wait_or_answer(call, None);
        return Ok(());
    }
    let made = deliveries.write(call)?;
    made.iter().for_each(|key| call.changed(STREAM, "xgroup-createconsumer", *key));
    answer(call, &found)
}
