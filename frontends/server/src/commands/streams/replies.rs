//! Entries of streams in replies.

use std::ops::ControlFlow;

use resp::Reply;

use crate::errors::Refusal;
use crate::execution::call::Call;
use crate::execution::gathered::Gathered;
use crate::keyspace::collections::stream::{Ids, Stream, StreamEntry, StreamId, texts};

/// Reads entries for a reply: up to `count_max` of them, all if it is 0.
pub(super) fn read(
    gathered: &mut Gathered,
    stream: &Stream<'_>,
    ids: Ids,
    count_max: u64,
    is_reverse: bool,
) -> Result<Vec<StreamEntry>, Refusal> {
    let mut entries = Vec::new();
    stream.each(ids, is_reverse, |id, value| {
        gathered.read_and_add(value.len())?;
        entries.push((id, value.to_vec()));
        Ok(until(entries.len(), count_max))
    })?;
    Ok(entries)
}

/// Goes on until there are `count_max`.
pub(super) fn until(count: usize, count_max: u64) -> ControlFlow<()> {
    if count as u64 == count_max { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}

pub(super) fn write_id(reply: &mut Reply<'_>, id: StreamId) {
    reply.bulk(id.to_string().as_bytes());
}

/// Writes an entry with its fields and values; with none if the entry was deleted.
pub(super) fn write_entry(reply: &mut Reply<'_>, id: StreamId, texts: Option<&[&[u8]]>) {
    reply.array(2);
    write_id(reply, id);
    match texts {
        Some(texts) => {
            reply.array(texts.len());
            texts.iter().for_each(|text| reply.bulk(text));
        }
        None => reply.null_array(),
    }
}

/// Replies with entries.
pub(super) fn answer(call: &mut Call<'_>, entries: &[StreamEntry]) -> Result<(), Refusal> {
    call.reply.array(entries.len());
    for (id, value) in entries {
        write_entry(&mut call.reply, *id, Some(&texts(value)?));
    }
    Ok(())
}
