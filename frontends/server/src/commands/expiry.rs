//! Expiry of keys: EXPIRE, PERSIST, TTL, and their variants.

use hikv::{Decision, Expiry};

use super::times::{self, Unit};
use crate::errors::{FixedError, Refusal};
use crate::execution::call::{Call, Function};
use crate::keyspace::collections::Changes;
use crate::observers::events::GENERIC;

/// Functions of these commands, by the names of their table rows.
pub(super) const FUNCTIONS: &[(&str, Function)] =
    functions![expire, expireat, expiretime, persist, pexpire, pexpireat, pexpiretime, pttl, ttl,];

/// Conditions for changing a key's expiry.
#[derive(Default, Clone, Copy)]
struct Conditions {
    /// The key does not expire yet.
    if_none: bool,
    /// The key already expires.
    if_some: bool,
    if_later: bool,
    if_earlier: bool,
}

fn expire(call: &mut Call<'_>) -> Result<(), Refusal> {
    expire_by(call, times::SECONDS, "expire")
}

fn pexpire(call: &mut Call<'_>) -> Result<(), Refusal> {
    expire_by(call, times::MILLISECONDS, "pexpire")
}

fn expireat(call: &mut Call<'_>) -> Result<(), Refusal> {
    expire_by(call, times::UNIX_SECONDS, "expireat")
}

fn pexpireat(call: &mut Call<'_>) -> Result<(), Refusal> {
    expire_by(call, times::UNIX_MILLISECONDS, "pexpireat")
}

/// One atomic step, including the conditions. A time in the past deletes the key.
fn expire_by(call: &mut Call<'_>, unit: Unit, command: &'static str) -> Result<(), Refusal> {
    let conditions = Conditions::of(call)?;
    let ms = times::moment_of(call.integer(2)?, unit, command)?;
    let (is_past, mut is_changed) = (ms <= times::now_ms(), false);
    if let Some(found) = call.found(1)? {
        let is_changed = conditions.hold(times::ms_of(found.expiry), ms);
        if is_changed {
            let mut changes = Changes::default();
            if is_past {
                found.delete(&mut changes)
            } else {
                found.expire(times::expiry_at(ms), &mut changes)
            }
            changes.write(call.store())?;
        }
        reply_changed(call, is_changed, if is_past { "del" } else { "expire" });
        return Ok(());
    }
    call.store().update_item(call.key(1), |held| {
        let held = held.filter(|held| conditions.hold(times::ms_of(held.expiry), ms));
        is_changed = held.is_some();
        match held {
            None => Decision::Keep,
            Some(_) if is_past => Decision::Delete,
            Some(held) => Decision::PutUntil(held.value.to_vec().into(), times::expiry_at(ms)),
        }
    })?;
    reply_changed(call, is_changed, if is_past { "del" } else { "expire" });
    Ok(())
}

fn reply_changed(call: &mut Call<'_>, is_changed: bool, event: &'static str) {
    if is_changed {
        call.changed(GENERIC, event, 1);
    }
    call.reply.integer(is_changed.into());
}

impl Conditions {
    fn of(call: &Call<'_>) -> Result<Conditions, Refusal> {
        let mut conditions = Conditions::default();
        for option in call.request.arguments().skip(2) {
            match option.to_ascii_lowercase().as_slice() {
                b"nx" => conditions.if_none = true,
                b"xx" => conditions.if_some = true,
                b"gt" => conditions.if_later = true,
                b"lt" => conditions.if_earlier = true,
                _ => {
                    return Err(Refusal::Message(format!("Unsupported option {}", String::from_utf8_lossy(option))));
                }
            }
        }
        if conditions.if_none && (conditions.if_some || conditions.if_later || conditions.if_earlier) {
            return Err(FixedError::NxXx.into());
        }
        if conditions.if_later && conditions.if_earlier {
            return Err(FixedError::GtLt.into());
        }
        Ok(conditions)
    }

    /// Returns whether a key with the expiry `old` may get the expiry `ms`. A key without expiry counts as later than
    /// any.
    fn hold(self, old: Option<i64>, ms: i64) -> bool {
        !(self.if_none && old.is_some()
            || self.if_some && old.is_none()
            || self.if_later && old.is_none_or(|old| ms <= old)
            || self.if_earlier && old.is_some_and(|old| ms >= old))
    }
}

/// One atomic step: of two concurrent clients only one gets the reply that an expiry was removed.
fn persist(call: &mut Call<'_>) -> Result<(), Refusal> {
    let mut is_changed = false;
    if let Some(found) = call.found(1)? {
        let is_changed = !found.expiry.is_never();
        if is_changed {
            let mut changes = Changes::default();
            found.expire(Expiry::NEVER, &mut changes);
            changes.write(call.store())?;
        }
        reply_changed(call, is_changed, "persist");
        return Ok(());
    }
    call.store().update_item(call.key(1), |held| {
        let held = held.filter(|held| !held.expiry.is_never());
        is_changed = held.is_some();
        held.map_or(Decision::Keep, |held| Decision::PutUntil(held.value.to_vec().into(), Expiry::NEVER))
    })?;
    reply_changed(call, is_changed, "persist");
    Ok(())
}

fn ttl(call: &mut Call<'_>) -> Result<(), Refusal> {
    reply_expiry(call, |ms| (left_ms(ms) + 500) / 1000)
}

fn pttl(call: &mut Call<'_>) -> Result<(), Refusal> {
    reply_expiry(call, left_ms)
}

fn expiretime(call: &mut Call<'_>) -> Result<(), Refusal> {
    reply_expiry(call, |ms| client_ms(ms).saturating_add(500) / 1000)
}

fn pexpiretime(call: &mut Call<'_>) -> Result<(), Refusal> {
    reply_expiry(call, client_ms)
}

/// Converts a time of the store to the clock that clients see.
fn client_ms(ms: i64) -> i64 {
    ms - times::lead_ms()
}

fn left_ms(ms: i64) -> i64 {
    (ms - times::now_ms()).max(0)
}

/// Replies with the expiry; -2 stands for a missing key, -1 for a key that does not expire.
fn reply_expiry(call: &mut Call<'_>, convert: impl FnOnce(i64) -> i64) -> Result<(), Refusal> {
    let of_string = times::expiry_of(call.store(), &call.key(1))?;
    let of_collection = || Ok::<_, Refusal>(call.found(1)?.map(|found| times::ms_of(found.expiry)));
    let number = match if of_string.is_some() { of_string } else { of_collection()? } {
        None => -2,
        Some(None) => -1,
        Some(Some(ms)) => convert(ms),
    };
    call.reply.integer(number);
    Ok(())
}
