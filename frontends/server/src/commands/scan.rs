//! KEYS, RANDOMKEY, SCAN: iteration without order.
//!
//! The cursor is the only state between two calls of SCAN. A cursor is a position among the hashes of keys, so it stays
//! valid while the store grows, and after a restart. All three commands walk over the keys of all databases and return
//! those of one.

use crate::connections::output::FULL_BYTES;
use crate::errors::Refusal;
use crate::execution::call::{Call, Function};
use resp::glob;

/// Functions of these commands, by the names of their table rows.
pub(super) const FUNCTIONS: &[(&str, Function)] = functions![keys, randomkey, scan];

/// As in Redis.
const COUNT_DEFAULT: u64 = 10;
/// Maximum number of keys visited per call, whatever `COUNT` says: some milliseconds, in which other clients wait.
const COUNT_MAX: u64 = 1 << 14;

/// The options after the cursor.
struct Options<'a> {
    pattern: Option<&'a [u8]>,
    /// A type is requested that no key has.
    is_other_type: bool,
    count: u64,
}

fn scan(call: &mut Call<'_>) -> Result<(), Refusal> {
    let mut cursor = cursor_of(call.request.argument(1))?;
    let options = Options::of(call.request.arguments().skip(1))?;
    let (namespace, mut keys, mut key_bytes, mut seen) = (call.namespace(), Vec::new(), 0, 0);
    loop {
        cursor = call.store().walk(cursor, |raw| {
            seen += 1;
            if let Some(key) = namespace.key_of(raw).filter(|key| options.shows(key)) {
                key_bytes += key.len();
                keys.push(key.to_vec());
            }
        })?;
        if cursor == 0 || seen >= options.count || key_bytes >= FULL_BYTES {
            break;
        }
    }
    call.reply.array(2);
    call.reply.bulk(cursor.to_string().as_bytes());
    call.reply.array(keys.len());
    keys.iter().for_each(|key| call.reply.bulk(key));
    Ok(())
}

fn cursor_of(argument: &[u8]) -> Result<u64, Refusal> {
    let digits = argument.iter().all(u8::is_ascii_digit).then(|| str::from_utf8(argument).ok()).flatten();
    digits.and_then(|digits| digits.parse().ok()).ok_or(Refusal::Cursor)
}

impl<'a> Options<'a> {
    fn shows(&self, key: &[u8]) -> bool {
        !self.is_other_type && self.pattern.is_none_or(|pattern| glob::matches(pattern, key))
    }

    fn of(mut arguments: impl Iterator<Item = &'a [u8]>) -> Result<Options<'a>, Refusal> {
        let mut options = Options { pattern: None, is_other_type: false, count: COUNT_DEFAULT };
        while let Some(name) = arguments.next() {
            let value = arguments.next().ok_or(Refusal::Syntax)?;
            match name.to_ascii_lowercase().as_slice() {
                b"match" => options.pattern = Some(value),
                b"count" => options.count = count_of(value)?,
                b"type" => options.is_other_type = !value.eq_ignore_ascii_case(b"string"),
                _ => return Err(Refusal::Syntax),
            }
        }
        Ok(options)
    }
}

fn count_of(argument: &[u8]) -> Result<u64, Refusal> {
    let count = resp::parse_integer(argument).ok_or(Refusal::NotAnInteger)?;
    if count < 1 { Err(Refusal::Syntax) } else { Ok((count as u64).min(COUNT_MAX)) }
}

fn keys(call: &mut Call<'_>) -> Result<(), Refusal> {
    let (namespace, pattern, mut cursor, mut keys) = (call.namespace(), call.argument(1), 0, Vec::new());
    loop {
        cursor = call.store().walk(cursor, |raw| {
            if let Some(key) = namespace.key_of(raw).filter(|key| glob::matches(pattern, key)) {
                keys.push(key.to_vec());
            }
        })?;
        if cursor == 0 {
            break;
        }
    }
    call.reply.array(keys.len());
    keys.iter().for_each(|key| call.reply.bulk(key));
    Ok(())
}

/// Number of keys from which RANDOMKEY picks one.
const RANDOM_COUNT_MIN: usize = 64;

/// Picks one of the first keys of a walk from a random position, or of all if they are few. With many keys, some are
/// more likely than others.
fn randomkey(call: &mut Call<'_>) -> Result<(), Refusal> {
    let namespace = call.namespace();
    let mut cursor = call.store().random_cursor(fastrand::u64(..))?;
    let (mut found, mut is_whole_pass) = (Vec::new(), false);
    while found.len() < RANDOM_COUNT_MIN {
        if cursor == 0 {
            // A complete pass from the start, which visits each key once.
            (found, is_whole_pass) = (Vec::new(), true);
        }
        cursor = call.store().walk(cursor, |raw| found.extend(namespace.key_of(raw).map(<[u8]>::to_vec)))?;
        if cursor == 0 && is_whole_pass {
            break;
        }
    }
    match found.is_empty() {
        true => call.reply.null_bulk(),
        false => call.reply.bulk(&found[fastrand::usize(..found.len())]),
    }
    Ok(())
}
