//! Skips values that cannot be stored: streams, values of modules, and hashes with fields that expire.

use std::io::Read;

use crate::error::Error;
use crate::input::Input;
use crate::value;

const MODULE: u8 = 7;
const STREAM: u8 = 15;
const STREAM_2: u8 = 19;
const STREAM_3: u8 = 21;
const HASH_EXPIRING: u8 = 24;
const HASH_LISTPACK_EXPIRING: u8 = 25;

/// An id of an entry in a stream.
const STREAM_ID_BYTES: usize = 16;
const TIME_BYTES: usize = 8;

/// Reads over a value of such a type.
///
/// # Errors
/// [`Error::Unsupported`] for a type whose form is not known.
pub(crate) fn skip<R: Read>(input: &mut Input<R>, value_type: u8) -> Result<(), Error> {
    match value_type {
        MODULE => {
            // The id of its type.
            input.length()?;
            module_parts(input)
        }
        HASH_EXPIRING => {
            input.array::<TIME_BYTES>()?;
            for _ in 0..input.length()? {
                input.lengths(1)?;
                input.string()?;
                input.string()?;
            }
            Ok(())
        }
        HASH_LISTPACK_EXPIRING => {
            input.array::<TIME_BYTES>()?;
            input.string().map(drop)
        }
        STREAM | STREAM_2 | STREAM_3 => stream(input, value_type),
        _ => Err(input.unsupported(value::name_of(value_type))),
    }
}

/// Reads over the parts of a value of a module, up to their end.
pub(crate) fn module_parts<R: Read>(input: &mut Input<R>) -> Result<(), Error> {
    loop {
        match input.length()? {
            0 => return Ok(()),
            1 | 2 => input.lengths(1)?,
            3 => _ = input.array::<4>()?,
            4 => _ = input.array::<8>()?,
            5 => _ = input.string()?,
            _ => return Err(input.malformed("a part of a module's value in an unknown form")),
        }
    }
}

fn stream<R: Read>(input: &mut Input<R>, value_type: u8) -> Result<(), Error> {
    for _ in 0..input.length()? {
        input.string()?;
        input.string()?;
    }
    // The count and the last id; later also the first one, the greatest deleted one, and the number of all ever added.
    input.lengths(if value_type == STREAM { 3 } else { 8 })?;
    for _ in 0..input.length()? {
        input.string()?;
        // The last id delivered, later also the number of entries read.
        input.lengths(if value_type == STREAM { 2 } else { 3 })?;
        for _ in 0..input.length()? {
            input.array::<{ STREAM_ID_BYTES + TIME_BYTES }>()?;
            input.length()?;
        }
        for _ in 0..input.length()? {
            input.string()?;
            input.array::<TIME_BYTES>()?;
            if value_type == STREAM_3 {
                input.array::<TIME_BYTES>()?;
            }
            for _ in 0..input.length()? {
                input.array::<STREAM_ID_BYTES>()?;
            }
        }
    }
    Ok(())
}
