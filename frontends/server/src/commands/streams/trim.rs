//! The options by which XADD and XTRIM delete the first entries.

use super::arguments::{self, NewId};
use super::replies;
use crate::errors::{Refusal, StreamError};
use crate::execution::call::Call;
use crate::execution::gathered::Gathered;
use crate::keyspace::collections::stream::{Ids, Stream, StreamEdit, StreamId};

/// The limit of entries that are trimmed with `~`, in nodes of Redis, and at most.
const NODE_COUNT_MAX: u64 = 100;
const LIMIT_MAX: u64 = 1_000_000;
const NODE_ENTRIES: u64 = 100;

/// The entries that stay.
enum Kept {
    Last(u64),
    From(StreamId),
}

/// A trim.
pub(super) struct Trim {
    kept: Kept,
    /// Whole nodes of Redis go, up to this number of entries; 0 if there is no limit.
    approximate: Option<u64>,
}

/// The options of XADD and XTRIM.
pub(super) struct TrimOptions {
    pub(super) trim: Option<Trim>,
    /// NOMKSTREAM.
    pub(super) only_existing: bool,
    /// The id of XADD, which ends its options.
    pub(super) id: Option<NewId>,
    /// The index of the first argument after them.
    pub(super) end: usize,
}

impl TrimOptions {
    /// Parses the options, and for XADD the id.
    pub(super) fn of(call: &Call<'_>, is_add: bool) -> Result<TrimOptions, Refusal> {
        let (mut kept, mut is_approximate, mut limit) = (None, false, None);
        let (mut only_existing, mut id, mut index) = (false, None, 2);
        while index < call.request.len() {
            let has_more = |count: usize| index + count < call.request.len();
            match call.argument(index).to_ascii_lowercase().as_slice() {
                strategy @ (b"maxlen" | b"minid") if has_more(1) => {
                    if kept.is_some() {
                        return Err(StreamError::TwoStrategies.into());
                    }
                    let operator = if has_more(2) { call.argument(index + 1) } else { b"" };
                    is_approximate = operator == b"~";
                    let at = index + if matches!(operator, b"~" | b"=") { 2 } else { 1 };
                    kept = Some(match strategy {
                        b"maxlen" => Kept::Last(call.integer(at)?.try_into().map_err(|_| StreamError::NegativeMaxlen)?),
                        _ => Kept::From(arguments::id(call.argument(at))?),
                    });
                    index = at + 1;
                }
                b"limit" if has_more(1) => {
                    limit = Some(call.integer(index + 1)?.try_into().map_err(|_| StreamError::NegativeLimit)?);
                    index += 2;
                }
                b"nomkstream" if is_add => {
                    only_existing = true;
                    index += 1;
                }
                _ if is_add => {
                    id = Some(arguments::new_id(call.argument(index))?);
                    index += 1;
                    break;
                }
                _ => return Err(Refusal::Syntax),
            }
        }
        let options = |trim| Ok(TrimOptions { trim, only_existing, id, end: index });
        let Some(kept) = kept else {
            return match limit {
                Some(1..) => Err(StreamError::LimitWithoutStrategy.into()),
                _ if is_add => options(None),
                _ => Err(StreamError::NoStrategy.into()),
            };
        };
        if limit.is_some() && !is_approximate {
            return Err(StreamError::LimitOfExact.into());
        }
        let default = node_entries(call).saturating_mul(NODE_COUNT_MAX).min(LIMIT_MAX);
        options(Some(Trim { kept, approximate: is_approximate.then(|| limit.unwrap_or(default)) }))
    }
}

/// Returns the number of entries in a node of Redis.
pub(super) fn node_entries(call: &Call<'_>) -> u64 {
    let count = call.shared.administration.settings.named("stream-node-max-entries").parse().unwrap_or(NODE_ENTRIES);
    if count == 0 { NODE_ENTRIES } else { count }
}

impl Trim {
    /// Deletes the first entries of a stream, and an entry that the change has just added, as far as they do not stay;
    /// returns their number.
    pub(super) fn apply(
        &self,
        call: &Call<'_>,
        stream: Option<&Stream<'_>>,
        added: Option<StreamId>,
        edit: &mut StreamEdit<'_>,
    ) -> Result<u64, Refusal> {
        let count = edit.len();
        let (excess, last) = match self.kept {
            Kept::Last(kept) => (count.saturating_sub(kept), Some(StreamId::MAX)),
            Kept::From(first) => (count, first.previous()),
        };
        let Some(last) = last.filter(|_| excess > 0) else { return Ok(0) };
        let excess_max = self.approximate.filter(|limit| *limit > 0).map_or(excess, |limit| limit.min(excess));
        let (mut gathered, mut ids) = (Gathered::of(call), Vec::new());
        if let Some(stream) = stream {
            stream.each(Ids { first: StreamId::ZERO, last }, false, |id, value| {
                gathered.read(value.len())?;
                ids.push(id);
                Ok(replies::until(ids.len(), excess_max))
            })?;
        }
        ids.extend(added.filter(|added| (ids.len() as u64) < excess_max && *added <= last));
        if self.approximate.is_some() && (ids.len() as u64) < count {
            // A node of Redis ends where a multiple of its entries has been added, unless XDEL deleted some.
            let (node_entries, first) = (node_entries(call), edit.state().added_count.saturating_sub(count));
            let end = (first + ids.len() as u64) / node_entries * node_entries;
            ids.truncate(end.saturating_sub(first) as usize);
        }
        ids.iter().for_each(|id| edit.cut(*id));
        Ok(ids.len() as u64)
    }
}
