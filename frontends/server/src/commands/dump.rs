//! DUMP and RESTORE, in Redis' format: each reads the other's output.

use super::{rdb, times};
use crate::errors::{FixedError, Refusal};
use crate::execution::call::{Call, Function};
use crate::observers::events::GENERIC;

/// Functions of these commands, by the names of their table rows.
pub(super) const FUNCTIONS: &[(&str, Function)] = functions![dump, restore];

fn dump(call: &mut Call<'_>) -> Result<(), Refusal> {
    match call.store().get_with(call.key(1), rdb::dump)? {
        None if call.found(1)?.is_some() => return Err(FixedError::NoCollectionDump.into()),
        Some(dumped) => call.reply.bulk(&dumped),
        None => call.reply.null_bulk(),
    }
    Ok(())
}

#[derive(Default)]
struct RestoreOptions {
    replaces: bool,
    is_absolute: bool,
}

fn restore(call: &mut Call<'_>) -> Result<(), Refusal> {
    let options = RestoreOptions::of(call)?;
    if !options.replaces && call.contains(1)? {
        return Err(FixedError::BusyKey.into());
    }
    let number = call.integer(2)?;
    if number < 0 {
        return Err(FixedError::NegativeTtl.into());
    }
    let value = rdb::restore(call.argument(3), call.shared.administration.settings.bulk_bytes_max())?;
    let unit = if options.is_absolute { times::UNIX_MILLISECONDS } else { times::MILLISECONDS };
    let until = if number == 0 { None } else { Some(times::moment_of(number, unit, "restore")?) };
    if until.is_some_and(|ms| ms <= times::now_ms()) {
        // It has already expired, so the replaced key is deleted.
        if options.replaces && call.delete(1)? {
            call.changed(GENERIC, "del", 1);
        }
        call.ok();
        return Ok(());
    }
    if !put(call, value, until, options.replaces)? {
        return Err(FixedError::BusyKey.into());
    }
    call.changed(GENERIC, "restore", 1);
    call.ok();
    Ok(())
}

fn put(call: &Call<'_>, value: Vec<u8>, until: Option<i64>, replaces: bool) -> Result<bool, Refusal> {
    use hikv::{Decision, Expiry};
    let expiry = until.map_or(Expiry::NEVER, |ms| Expiry::at_ms(ms as u64));
    if call.found(1)?.is_some() {
        if replaces {
            call.put(1, &value, expiry)?;
        }
        return Ok(replaces);
    }
    let mut is_put = false;
    call.store().update(call.key(1), |old| {
        is_put = replaces || old.is_none();
        if is_put { Decision::PutUntil(value.clone().into(), expiry) } else { Decision::Keep }
    })?;
    Ok(is_put)
}

impl RestoreOptions {
    /// Idle time and frequency are checked as in Redis, but not stored.
    fn of(call: &Call<'_>) -> Result<RestoreOptions, Refusal> {
        let (mut options, mut is_idle, mut is_frequent) = (RestoreOptions::default(), false, false);
        let mut arguments = call.request.arguments().skip(3);
        while let Some(name) = arguments.next() {
            let mut number =
                || resp::parse_integer(arguments.next().ok_or(Refusal::Syntax)?).ok_or(Refusal::NotAnInteger);
            match name.to_ascii_lowercase().as_slice() {
                b"replace" => options.replaces = true,
                b"absttl" => options.is_absolute = true,
                b"idletime" if !is_frequent => {
                    number()?.try_into().map(|_: u64| is_idle = true).map_err(|_| FixedError::IdleTime)?;
                }
                b"freq" if !is_idle => {
                    number()?.try_into().map(|_: u8| is_frequent = true).map_err(|_| FixedError::Frequency)?;
                }
                _ => return Err(Refusal::Syntax),
            }
        }
        Ok(options)
    }
}
