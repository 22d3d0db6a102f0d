//! Writing entire values: SET and its older forms, MSET, CAS.

use std::borrow::Cow;

use hikv::{Decision, Durability, Expiry};

use super::times::{self, KeepOption, Unit};
use crate::errors::Refusal;
use crate::execution::call::{Call, Function};
use crate::keyspace::collections::Collection;
use crate::observers::events::{GENERIC, STRING};

/// Functions of these commands, by the names of their table rows.
pub(super) const FUNCTIONS: &[(&str, Function)] = functions![cas, getset, mset, msetnx, psetex, set, setex, setnx];

/// The condition for a write.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Condition {
    Always,
    IfAbsent,
    IfPresent,
}

/// The key's expiry after the write.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Until {
    Forever,
    Kept,
    Moment(i64),
}

struct SetOptions {
    condition: Condition,
    until: Until,
    returns_old: bool,
    /// The durability of this write; by default the store's.
    durability: Option<Durability>,
}

const PLAIN: SetOptions =
    SetOptions { condition: Condition::Always, until: Until::Forever, returns_old: false, durability: None };

fn set(call: &mut Call<'_>) -> Result<(), Refusal> {
    if call.request.len() == 3 {
        call.put(1, call.argument(2), Expiry::NEVER)?;
        call.changed(STRING, "set", 1);
        call.ok();
        return Ok(());
    }
    let options = SetOptions::of(call)?;
    let (is_put, old) = match options.durability {
        Some(level) => call.store().at(level, || put(call, 2, &options))?,
        None => put(call, 2, &options)?,
    };
    match old {
        Some(old) if options.returns_old => call.reply.bulk(&old),
        None if options.returns_old => call.reply.null_bulk(),
        _ if is_put => call.ok(),
        _ => call.reply.null_bulk(),
    }
    Ok(())
}

impl SetOptions {
    fn of(call: &Call<'_>) -> Result<SetOptions, Refusal> {
        let (mut options, mut until) = (PLAIN, times::Until::default());
        let mut arguments = call.request.arguments().skip(2);
        while let Some(name) = arguments.next() {
            let mut condition = |wanted| {
                let is_free = options.condition == Condition::Always || options.condition == wanted;
                options.condition = wanted;
                if is_free { Ok(()) } else { Err(Refusal::Syntax) }
            };
            match name.to_ascii_lowercase().as_slice() {
                b"nx" => condition(Condition::IfAbsent)?,
                b"xx" => condition(Condition::IfPresent)?,
                b"get" => options.returns_old = true,
                b"durable" if options.durability.is_none() => {
                    options.durability = Some(level_of(arguments.next().ok_or(Refusal::Syntax)?)?);
                }
                other => until.take(other, KeepOption::Kept, &mut arguments)?,
            }
        }
        options.until = match until.moment("set")? {
            Some(ms) => Until::Moment(ms),
            None if until.is_kept() => Until::Kept,
            None => Until::Forever,
        };
        Ok(options)
    }
}

fn level_of(name: &[u8]) -> Result<Durability, Refusal> {
    let levels = [Durability::Power, Durability::Buffered, Durability::Process];
    levels.into_iter().find(|level| level.name().as_bytes().eq_ignore_ascii_case(name)).ok_or(Refusal::Syntax)
}

/// Puts argument number `index` as the value of the first. Returns whether it did, and the previous value.
fn put(call: &mut Call<'_>, index: usize, options: &SetOptions) -> Result<(bool, Option<Vec<u8>>), Refusal> {
    let value = call.argument(index);
    if let Some(found) = call.found(1)? {
        return Ok((replace(call, &found, value, options)?, None));
    }
    let (mut old, mut is_put) = (None, false);
    call.store().update(call.key(1), |found| {
        old = found.filter(|_| options.returns_old).map(<[u8]>::to_vec);
        is_put = match options.condition {
            Condition::Always => true,
            Condition::IfAbsent => found.is_none(),
            Condition::IfPresent => found.is_some(),
        };
        match options.until {
            _ if !is_put => Decision::Keep,
            Until::Kept => Decision::Put(Cow::Borrowed(value)),
            Until::Forever => Decision::PutUntil(Cow::Borrowed(value), Expiry::NEVER),
            Until::Moment(ms) => Decision::PutUntil(Cow::Borrowed(value), times::expiry_at(ms)),
        }
    })?;
    if is_put {
        note_put(call, options);
    }
    Ok((is_put, old))
}

/// Puts a string in the place of a collection; returns whether it did.
fn replace(call: &mut Call<'_>, found: &Collection<'_>, value: &[u8], options: &SetOptions) -> Result<bool, Refusal> {
    if options.condition == Condition::IfAbsent {
        return Ok(false);
    }
    let expiry = match options.until {
        Until::Kept => found.expiry,
        Until::Forever => Expiry::NEVER,
        Until::Moment(ms) => times::expiry_at(ms),
    };
    call.put(1, value, expiry)?;
    note_put(call, options);
    Ok(true)
}

/// Reports a key that was put.
fn note_put(call: &Call<'_>, options: &SetOptions) {
    call.changed(STRING, "set", 1);
    if matches!(options.until, Until::Moment(_)) {
        call.report(GENERIC, "expire", 1);
    }
}

fn setnx(call: &mut Call<'_>) -> Result<(), Refusal> {
    let (is_put, _) = put(call, 2, &SetOptions { condition: Condition::IfAbsent, ..PLAIN })?;
    call.reply.integer(is_put.into());
    Ok(())
}

fn setex(call: &mut Call<'_>) -> Result<(), Refusal> {
    set_until(call, times::SECONDS, "setex")
}

fn psetex(call: &mut Call<'_>) -> Result<(), Refusal> {
    set_until(call, times::MILLISECONDS, "psetex")
}

fn set_until(call: &mut Call<'_>, unit: Unit, command: &'static str) -> Result<(), Refusal> {
    let ms = times::positive_moment_of(call.argument(2), unit, command)?;
    put(call, 3, &SetOptions { until: Until::Moment(ms), ..PLAIN })?;
    call.ok();
    Ok(())
}

fn getset(call: &mut Call<'_>) -> Result<(), Refusal> {
    match put(call, 2, &SetOptions { returns_old: true, ..PLAIN })?.1 {
        Some(old) => call.reply.bulk(&old),
        None => call.reply.null_bulk(),
    }
    Ok(())
}

/// Also atomic for a crash ([`Call::put_all`]). It has exclusive access,
/// so that no client that reads several keys sees only some of them set.
fn mset(call: &mut Call<'_>) -> Result<(), Refusal> {
    put_pairs(call, &pairs_of(call, "mset")?)?;
    call.ok();
    Ok(())
}

fn msetnx(call: &mut Call<'_>) -> Result<(), Refusal> {
    let pairs = pairs_of(call, "msetnx")?;
    for (index, _) in &pairs {
        if call.contains(*index)? {
            call.reply.integer(0);
            return Ok(());
        }
    }
    put_pairs(call, &pairs)?;
    call.reply.integer(1);
    Ok(())
}

/// The number of the argument that is the key, and the value.
type Pair<'a> = (usize, &'a [u8]);

fn pairs_of<'a>(call: &Call<'a>, command: &'static str) -> Result<Vec<Pair<'a>>, Refusal> {
    if call.request.len().is_multiple_of(2) {
        return Err(Refusal::ArgumentCount { command });
    }
    Ok((1..call.request.len()).step_by(2).map(|index| (index, call.argument(index + 1))).collect())
}

fn put_pairs(call: &mut Call<'_>, pairs: &[Pair<'_>]) -> Result<(), Refusal> {
    call.put_all(pairs, Expiry::NEVER)?;
    pairs.iter().for_each(|(index, _)| call.changed(STRING, "set", *index));
    Ok(())
}

/// Sets the value if the current one is the expected one; replies 1 if it was.
fn cas(call: &mut Call<'_>) -> Result<(), Refusal> {
    let (expected, new) = (call.argument(2), call.argument(3));
    let is_put = call.store().compare_and_swap(call.key(1), expected, new)?;
    if is_put {
        call.changed(STRING, "set", 1);
    }
    call.reply.integer(is_put.into());
    Ok(())
}
