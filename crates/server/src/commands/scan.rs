//! SCAN: all keys, a part at a time, in no order.
//!
//! The cursor is all that there is between two calls. It names a place among the keys' hashes, so it stays good while the
//! store grows, and when it is served anew.

use super::{Action, Call, Command, Keys};
use crate::errors::Refusal;
use crate::glob;
use crate::output::FULL_BYTES;

pub(super) static SCAN: Command = Command {
    name: "scan",
    arity: -2,
    flags: &["readonly"],
    keys: Keys::NONE,
    group: "generic",
    summary: "Incrementally iterate the key names in the database",
    complexity: "O(1) for every call. O(N) for a complete iteration, where N is the number of keys in the database",
    since: "2.8.0",
    action: Action::Apply(scan),
};

/// As in Redis.
const COUNT_DEFAULT: u64 = 10;
/// Keys that one call looks at, whatever `COUNT` hints at: some milliseconds, in which others wait.
const COUNT_MAX: u64 = 1 << 14;

/// What stands after the cursor.
struct Options<'a> {
    pattern: Option<&'a [u8]>,
    count: u64,
}

fn scan(call: &mut Call<'_>) -> Result<(), Refusal> {
    let mut cursor = cursor_of(call.request.argument(1))?;
    let options = Options::of(call.request.arguments().skip(1))?;
    let (mut keys, mut key_bytes, mut seen) = (Vec::new(), 0, 0);
    loop {
        cursor = call.shared.store.walk(cursor, |key, _| {
            seen += 1;
            if options.pattern.is_none_or(|pattern| glob::matches(pattern, key)) {
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
    fn of(mut arguments: impl Iterator<Item = &'a [u8]>) -> Result<Options<'a>, Refusal> {
        let mut options = Options { pattern: None, count: COUNT_DEFAULT };
        while let Some(name) = arguments.next() {
            let value = arguments.next().ok_or(Refusal::Syntax)?;
            match name.to_ascii_lowercase().as_slice() {
                b"match" => options.pattern = Some(value),
                b"count" => options.count = count_of(value)?,
                b"type" => return Err(Refusal::Unsupported { command: "SCAN", option: "TYPE" }),
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
