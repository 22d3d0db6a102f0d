//! KEYS, RANDOMKEY, SCAN: iteration without order.
//!
//! The cursor is the only state between two calls of SCAN. A cursor is a position among the hashes of keys, so it stays
//! valid while the store grows, and after a restart. All three commands walk over the keys of all databases and return
//! those of one.

use crate::connections::output::FULL_BYTES;
use crate::errors::Refusal;
use crate::execution::call::{Call, Function};
use crate::keyspace::collections::View;
use resp::glob;

/// Functions of these commands, by the names of their table rows.
pub(super) const FUNCTIONS: &[(&str, Function)] = functions![keys, randomkey, scan];

/// As in Redis.
const COUNT_DEFAULT: u64 = 10;
/// Maximum number of keys visited per call, whatever `COUNT` says: some milliseconds, in which other clients wait.
const COUNT_MAX: u64 = 1 << 14;

/// The same, for elements of collections among the keys.
const ELEMENT_COUNT_MAX: u64 = 1 << 10;

/// The options after the cursor.
pub(super) struct Options<'a> {
    pattern: Option<&'a [u8]>,
    /// Only keys of this type are requested.
    type_name: Option<Vec<u8>>,
    count: u64,
}

fn scan(call: &mut Call<'_>) -> Result<(), Refusal> {
    let mut cursor = cursor_of(call.request.argument(1))?;
    let options = Options::of(call.request.arguments().skip(1), true)?;
    let (namespace, view, mut keys, mut key_bytes) = (call.namespace(), call.view(), Vec::new(), 0);
    let (mut seen, mut walked) = (0, 0);
    loop {
        cursor = call.store().walk(cursor, |raw| {
            walked += 1;
            let of_collection = || Some((view?.key_of(raw)?, true));
            let Some((key, is_collection)) = namespace.key_of(raw).map(|key| (key, false)).or_else(of_collection)
            else {
                return;
            };
            seen += 1;
            if options.shows(key, is_collection) {
                key_bytes += key.len();
                keys.push(key.to_vec());
            }
        })?;
        // Elements of collections count less than keys.
        if cursor == 0 || seen >= options.count || walked >= options.walked_max(view) || key_bytes >= FULL_BYTES {
            break;
        }
    }
    if let (Some(name), Some(view)) = (options.type_of_collection(), view) {
        let mut is_wanted = Vec::with_capacity(keys.len());
        for key in &keys {
            is_wanted.push(view.find(key)?.is_some_and(|found| found.collection_type().name().as_bytes() == name));
        }
        let mut is_wanted = is_wanted.into_iter();
        keys.retain(|_| is_wanted.next() == Some(true));
    }
    call.reply.array(2);
    call.reply.bulk(cursor.to_string().as_bytes());
    call.reply.array(keys.len());
    keys.iter().for_each(|key| call.reply.bulk(key));
    Ok(())
}

pub(super) fn cursor_of(argument: &[u8]) -> Result<u64, Refusal> {
    let digits = argument.iter().all(u8::is_ascii_digit).then(|| str::from_utf8(argument).ok()).flatten();
    digits.and_then(|digits| digits.parse().ok()).ok_or(Refusal::Cursor)
}

impl<'a> Options<'a> {
    fn shows(&self, key: &[u8], is_collection: bool) -> bool {
        let may_be_wanted = self.type_name.is_none() || is_collection == self.type_of_collection().is_some();
        may_be_wanted && self.matches(key)
    }

    /// Returns the requested type unless it is that of strings.
    fn type_of_collection(&self) -> Option<&[u8]> {
        self.type_name.as_deref().filter(|name| *name != b"string")
    }

    /// Returns how many keys of the store are visited.
    fn walked_max(&self, view: Option<View<'_>>) -> u64 {
        if view.is_some() { self.count.max(ELEMENT_COUNT_MAX) } else { self.count }
    }

    /// Returns whether a member matches.
    pub(super) fn matches(&self, member: &[u8]) -> bool {
        self.pattern.is_none_or(|pattern| glob::matches(pattern, member))
    }

    /// Returns the number of keys or members to visit.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Parses the options after the cursor; only `SCAN` accepts a type.
    pub(super) fn of(
        mut arguments: impl Iterator<Item = &'a [u8]>,
        accepts_type: bool,
    ) -> Result<Options<'a>, Refusal> {
        let mut options = Options { pattern: None, type_name: None, count: COUNT_DEFAULT };
        while let Some(name) = arguments.next() {
            let value = arguments.next().ok_or(Refusal::Syntax)?;
            match name.to_ascii_lowercase().as_slice() {
                b"match" => options.pattern = Some(value),
                b"count" => options.count = count_of(value)?,
                b"type" if accepts_type => options.type_name = Some(value.to_ascii_lowercase()),
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
    let (pattern, mut cursor, mut keys) = (call.argument(1), 0, Vec::new());
    let key_of = key_of(call);
    loop {
        cursor = call.store().walk(cursor, |raw| {
            if let Some(key) = key_of(raw).filter(|key| glob::matches(pattern, key)) {
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

/// Returns a function that returns the client's key of a stored key, if it is one of the selected database.
fn key_of<'a>(call: &Call<'a>) -> impl Fn(&[u8]) -> Option<&[u8]> + use<'a> {
    let (namespace, view) = (call.namespace(), call.view());
    move |raw| namespace.key_of(raw).or_else(|| view?.key_of(raw))
}

/// Number of keys from which RANDOMKEY picks one.
const RANDOM_COUNT_MIN: usize = 64;

/// Picks one of the first keys of a walk from a random position, or of all if they are few. With many keys, some are
/// more likely than others.
fn randomkey(call: &mut Call<'_>) -> Result<(), Refusal> {
    let key_of = key_of(call);
    let mut cursor = call.store().random_cursor(fastrand::u64(..))?;
    let (mut found, mut is_whole_pass) = (Vec::new(), false);
    while found.len() < RANDOM_COUNT_MIN {
        if cursor == 0 {
            // A complete pass from the start, which visits each key once.
            (found, is_whole_pass) = (Vec::new(), true);
        }
        cursor = call.store().walk(cursor, |raw| found.extend(key_of(raw).map(<[u8]>::to_vec)))?;
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
