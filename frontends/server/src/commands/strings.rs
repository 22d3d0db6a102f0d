//! Parts of values: APPEND, GETRANGE, SETRANGE; and GETDEL, GETEX, STRLEN.

use std::borrow::Cow;

use hikv::{Decision, Expiry};

use super::times::{self, KeepOption, Until};
use super::values::answer_value;
use crate::errors::{FixedError, Refusal};
use crate::execution::call::{Call, Function};
use crate::observers::events::{GENERIC, STRING};

/// Functions of these commands, by the names of their table rows.
pub(super) const FUNCTIONS: &[(&str, Function)] = functions![
    append, getdel, getex, getrange, setrange, strlen, "substr" => getrange,
];

/// Refuses a value of this length if it exceeds the maximum.
pub(super) fn check_length(call: &Call<'_>, len_bytes: u64) -> Result<(), Refusal> {
    let is_allowed = len_bytes <= call.shared.administration.settings.bulk_bytes_max() as u64;
    if is_allowed { Ok(()) } else { Err(FixedError::StringLength.into()) }
}

fn append(call: &mut Call<'_>) -> Result<(), Refusal> {
    let added = call.argument(2);
    let mut outcome = Ok(0);
    call.store().update(call.key(1), |value| {
        let value = value.unwrap_or_default();
        let len_bytes = value.len() + added.len();
        outcome = check_length(call, len_bytes as u64).map(|()| len_bytes);
        if outcome.is_ok() { Decision::Put(Cow::Owned([value, added].concat())) } else { Decision::Keep }
    })?;
    let len_bytes = outcome?;
    call.changed(STRING, "append", 1);
    call.reply.integer(len_bytes as i64);
    Ok(())
}

fn strlen(call: &mut Call<'_>) -> Result<(), Refusal> {
    let len_bytes = call.store().get_part_with(call.key(1), <[u8]>::len)?;
    call.reply.integer(len_bytes.unwrap_or(0) as i64);
    Ok(())
}

fn getrange(call: &mut Call<'_>) -> Result<(), Refusal> {
    let (start, end) = (call.integer(2)?, call.integer(3)?);
    let part = call.store().get_part_with(call.key(1), |value| {
        range_of(start, end, value.len()).map_or(Vec::new(), |(start, end)| value[start..=end].to_vec())
    })?;
    call.reply.bulk(&part.unwrap_or_default());
    Ok(())
}

/// Returns the first and last position of a range within `len`; negative positions count from the end.
pub(super) fn range_of(start: i64, end: i64, len: usize) -> Option<(usize, usize)> {
    if start < 0 && end < 0 && start > end { None } else { places_of(start, end, len) }
}

/// Like [`range_of`], with both positions before the start clamped to the start.
pub(super) fn places_of(start: i64, end: i64, len: usize) -> Option<(usize, usize)> {
    let len = len as i64;
    let place = |place: i64| if place < 0 { len.saturating_add(place).max(0) } else { place };
    let (start, end) = (place(start), place(end).min(len - 1));
    (len > 0 && start <= end).then_some((start as usize, end as usize))
}

fn setrange(call: &mut Call<'_>) -> Result<(), Refusal> {
    let (offset, part) = (call.integer(2)?, call.argument(3));
    let offset = usize::try_from(offset).map_err(|_| FixedError::Offset)?;
    if part.is_empty() {
        return strlen(call);
    }
    check_length(call, (offset as u64).saturating_add(part.len() as u64))?;
    let mut len_bytes = 0;
    call.store().update(call.key(1), |value| {
        let mut value = value.unwrap_or_default().to_vec();
        value.resize(value.len().max(offset + part.len()), 0);
        value[offset..offset + part.len()].copy_from_slice(part);
        len_bytes = value.len();
        Decision::Put(value.into())
    })?;
    call.changed(STRING, "setrange", 1);
    call.reply.integer(len_bytes as i64);
    Ok(())
}

fn getdel(call: &mut Call<'_>) -> Result<(), Refusal> {
    let mut old = None;
    call.store().update(call.key(1), |value| {
        old = value.map(<[u8]>::to_vec);
        if value.is_some() { Decision::Delete } else { Decision::Keep }
    })?;
    if old.is_some() {
        call.changed(GENERIC, "del", 1);
    }
    answer_value(old.as_deref(), &mut call.reply, call.event_counts);
    Ok(())
}

/// Replies with the value, and changes its expiry.
fn getex(call: &mut Call<'_>) -> Result<(), Refusal> {
    let mut until = Until::default();
    let mut arguments = call.request.arguments().skip(1);
    while let Some(name) = arguments.next() {
        until.take(name, KeepOption::Persist, &mut arguments)?;
    }
    if until.is_unset() || !call.store().contains(call.key(1))? {
        let value = call.store().get(call.key(1))?;
        answer_value(value.as_deref(), &mut call.reply, call.event_counts);
        return Ok(());
    }
    let moment = until.moment("getex")?;
    let is_past = moment.is_some_and(|ms| ms <= times::now_ms());
    let (mut old, mut event) = (None, None);
    call.store().update_item(call.key(1), |held| {
        old = held.map(|held| held.value.to_vec());
        let decision = held.map_or(Decision::Keep, |held| match moment {
            Some(_) if is_past => Decision::Delete,
            Some(ms) => Decision::PutUntil(held.value.to_vec().into(), times::expiry_at(ms)),
            None if held.expiry.is_never() => Decision::Keep,
            None => Decision::PutUntil(held.value.to_vec().into(), Expiry::NEVER),
        });
        event = match decision {
            Decision::Keep => None,
            Decision::Delete => Some("del"),
            _ => Some(moment.map_or("persist", |_| "expire")),
        };
        decision
    })?;
    if let Some(event) = event {
        call.changed(GENERIC, event, 1);
    }
    answer_value(old.as_deref(), &mut call.reply, call.event_counts);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::range_of;

    #[test]
    fn ranges_are_those_of_redis() {
        assert_eq!(range_of(0, -1, 5), Some((0, 4)));
        assert_eq!(range_of(-3, -2, 5), Some((2, 3)));
        assert_eq!(range_of(-100, 2, 5), Some((0, 2)));
        assert_eq!(range_of(3, 100, 5), Some((3, 4)));
        assert_eq!(range_of(i64::MIN, i64::MIN, 5), Some((0, 0)));
        for (start, end, len) in [(3, 2, 5), (-1, -2, 5), (5, 9, 5), (0, -1, 0), (0, -1, 0)] {
            assert_eq!(range_of(start, end, len), None);
        }
    }
}
