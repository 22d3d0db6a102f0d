//! DUMP and RESTORE, in Redis' format: each reads the other's output.

use hikv::{Decision, Expiry};
use rdb::{Kind, Part, Payload};

use super::times;
use crate::errors::{FixedError, Refusal};
use crate::execution::call::{Call, Function};
use crate::execution::collections::view_to_make;
use crate::execution::gathered::Gathered;
use crate::keyspace::collections::{Changes, Collection, CollectionType, Filling};
use crate::observers::events::GENERIC;

/// Functions of these commands, by the names of their table rows.
pub(super) const FUNCTIONS: &[(&str, Function)] = functions![dump, restore];

/// The bytes of a payload that are not its value, at most.
const FRAME_BYTES: usize = 32;

fn dump(call: &mut Call<'_>) -> Result<(), Refusal> {
    let string = call.store().get_with(call.key(1), |value| {
        let mut dumped = Vec::with_capacity(value.len() + FRAME_BYTES);
        dumped.push(Kind::String.type_byte());
        rdb::put_string(&mut dumped, value);
        dumped
    })?;
    let dumped = match string {
        Some(dumped) => Some(dumped),
        None => call.found(1)?.map(|found| dumped_collection(call, found)).transpose()?,
    };
    match dumped {
        Some(dumped) => call.reply.bulk(&rdb::sealed(dumped)),
        None => call.reply.null_bulk(),
    }
    Ok(())
}

/// Encodes a collection, without version and checksum.
fn dumped_collection(call: &Call<'_>, found: Collection<'_>) -> Result<Vec<u8>, Refusal> {
    let kind = found.collection_type().dumped().ok_or(FixedError::StreamDump)?;
    let (mut dumped, mut gathered) = (vec![kind.type_byte()], Gathered::of(call));
    rdb::put_length(&mut dumped, found.len());
    found.each_dumped(|encoded| {
        gathered.read_and_add(encoded.len())?;
        dumped.extend_from_slice(encoded);
        Ok::<(), Refusal>(())
    })?;
    Ok(dumped)
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
    let payload = Payload::of(call.argument(3)).map_err(|_| FixedError::BadDump)?;
    let value = match CollectionType::of_dumped(payload.kind()?) {
        None => Value::String(string_of(call, &payload)?),
        Some(collection_type) => Value::Collection(Box::new(collection_of(call, collection_type, &payload)?)),
    };
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
    let expiry = until.map_or(Expiry::NEVER, times::expiry_at);
    match value {
        Value::String(string) => put(call, &string, expiry, options.replaces)?,
        Value::Collection(filling) => replace(call, *filling, expiry)?,
    }
    call.changed(GENERIC, "restore", 1);
    call.ok();
    Ok(())
}

/// A restored value, which is not stored yet.
enum Value<'a> {
    String(Vec<u8>),
    Collection(Box<Filling<'a>>),
}

fn string_bytes_max(call: &Call<'_>) -> u64 {
    call.shared.administration.settings.bulk_bytes_max() as u64
}

fn string_of(call: &Call<'_>, payload: &Payload<'_>) -> Result<Vec<u8>, Refusal> {
    let mut string = Vec::new();
    payload.read(string_bytes_max(call), |part| match part {
        Part::String(value) => {
            string = value;
            Ok::<(), Refusal>(())
        }
        _ => Err(FixedError::BadFormat.into()),
    })?;
    Ok(string)
}

fn collection_of<'a>(
    call: &Call<'a>,
    collection_type: CollectionType,
    payload: &Payload<'_>,
) -> Result<Filling<'a>, Refusal> {
    let view = view_to_make(call)?;
    let (mut filling, mut gathered) = (Filling::begin(view, call.argument(1), collection_type)?, Gathered::of(call));
    payload.read(string_bytes_max(call), |part| gathered.read(filling.add(part)?))?;
    Ok(filling)
}

/// Puts a string, unless a key exists that must not be replaced.
fn put(call: &Call<'_>, value: &[u8], expiry: Expiry, replaces: bool) -> Result<(), Refusal> {
    let mut is_put = replaces;
    if call.found(1)?.is_some() {
        if replaces {
            call.put(1, value, expiry)?;
        }
    } else {
        call.store().update(call.key(1), |old| {
            is_put = replaces || old.is_none();
            if is_put { Decision::PutUntil(value.into(), expiry) } else { Decision::Keep }
        })?;
    }
    if is_put { Ok(()) } else { Err(FixedError::BusyKey.into()) }
}

/// Puts a collection, which replaces a value of any type, in one step.
fn replace(call: &Call<'_>, filling: Filling<'_>, expiry: Expiry) -> Result<(), Refusal> {
    let mut changes = Changes::default();
    if call.store().contains(call.key(1))? {
        changes.delete(call.key(1).into_owned());
    }
    call.found(1)?.iter().for_each(|replaced| replaced.delete(&mut changes));
    filling.finish(expiry, &mut changes)?;
    changes.write(call.store())
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
