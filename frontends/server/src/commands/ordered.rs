//! COUNTRANGE, PREFIX, RANGE: items in key order.

use std::ops::Bound;

use hikv::{Item, Ordered};

use crate::errors::Refusal;
use crate::execution::call::{Call, Function};
use crate::keyspace::items::Items;
use crate::keyspace::namespace::RawRange;
use command_table::is_open_end;

/// Functions of these commands, by the names of their table rows.
pub(super) const FUNCTIONS: &[(&str, Function)] = functions![countrange, prefix, range];

/// Maximum size of a reply; it is written in one piece while other clients wait.
const REPLY_BYTES_MAX: usize = 64 << 20;

/// The options after the keys.
struct Options {
    limit: usize,
    reverse: bool,
    parts: Parts,
}

/// The parts of an item in the reply.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Parts {
    Both,
    Keys,
    Values,
}

fn prefix(call: &mut Call<'_>) -> Result<(), Refusal> {
    let options = Options::of(call, 2)?;
    let prefix = call.argument(1);
    let last = successor(prefix);
    let high = last.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
    answer(call, Bound::Included(prefix), high, &options)
}

/// Returns the smallest key greater than all keys with this prefix.
fn successor(prefix: &[u8]) -> Option<Vec<u8>> {
    let kept = prefix.len() - prefix.iter().rev().take_while(|&&byte| byte == u8::MAX).count();
    let mut successor = prefix[..kept].to_vec();
    *successor.last_mut()? += 1;
    Some(successor)
}

/// Both ends are inclusive. As in Redis, the first argument is where the walk begins, which in reverse is the upper
/// end.
fn range(call: &mut Call<'_>) -> Result<(), Refusal> {
    let options = Options::of(call, 3)?;
    let (first, last) = (call.argument(1), call.argument(2));
    let (low, high) = if options.reverse { (last, first) } else { (first, last) };
    if is_empty(low, high) {
        call.reply.array(0);
        return Ok(());
    }
    answer(call, end(low), end(high), &options)
}

/// Both ends are inclusive.
fn countrange(call: &mut Call<'_>) -> Result<(), Refusal> {
    let (low, high) = (call.argument(1), call.argument(2));
    let mut count = 0;
    if !is_empty(low, high) {
        let ordered = call.shared.keyspace.ordered_soon()?;
        for range in call.namespace().ranges(end(low), end(high)) {
            count += call.store().count(ordered, range)?;
        }
    }
    call.reply.integer(count as i64);
    Ok(())
}

/// No key is above the end of all keys, or below their beginning.
fn is_empty(low: &[u8], high: &[u8]) -> bool {
    low == b"+" || high == b"-"
}

/// Parses the end of a range: a key, or one of the ends of all keys.
fn end(argument: &[u8]) -> Bound<&[u8]> {
    if is_open_end(argument) { Bound::Unbounded } else { Bound::Included(argument) }
}

impl Options {
    /// Parses the options from argument `first` on.
    fn of(call: &Call<'_>, first: usize) -> Result<Options, Refusal> {
        let mut options = Options { limit: usize::MAX, reverse: false, parts: Parts::Both };
        let mut arguments = call.request.arguments().skip(first - 1);
        while let Some(name) = arguments.next() {
            match name.to_ascii_lowercase().as_slice() {
                b"rev" => options.reverse = true,
                b"keys" => options.parts = Parts::Keys,
                b"values" => options.parts = Parts::Values,
                b"limit" => options.limit = limit_of(arguments.next().ok_or(Refusal::Syntax)?)?,
                _ => return Err(Refusal::Syntax),
            }
        }
        Ok(options)
    }
}

fn limit_of(argument: &[u8]) -> Result<usize, Refusal> {
    let limit = resp::parse_integer(argument).ok_or(Refusal::NotAnInteger)?;
    usize::try_from(limit).map_err(|_| Refusal::Negative)
}

/// Replies with the items between two keys.
fn answer(call: &mut Call<'_>, low: Bound<&[u8]>, high: Bound<&[u8]>, options: &Options) -> Result<(), Refusal> {
    let namespace = call.namespace();
    let ranges = namespace.ranges(low, high);
    let items = gather(call.store(), call.shared.keyspace.ordered_soon()?, ranges, options)?;
    let reply_count = if options.parts == Parts::Both { 2 } else { 1 };
    call.reply.array(reply_count * items.len());
    for (raw, value) in &items {
        if options.parts != Parts::Values {
            call.reply.bulk(namespace.key_of(raw).unwrap_or(raw));
        }
        if options.parts != Parts::Keys {
            call.reply.bulk(value);
        }
    }
    Ok(())
}

/// At least one item is returned, whatever its length.
fn gather(
    items: Items<'_>,
    ordered: &Ordered,
    mut ranges: Vec<RawRange>,
    options: &Options,
) -> Result<Vec<Item>, Refusal> {
    if options.reverse {
        ranges.reverse();
    }
    let (mut gathered, mut len_bytes) = (Vec::new(), 0);
    for range in ranges {
        let mut range = items.range(ordered, range, options.reverse)?;
        while gathered.len() < options.limit {
            let Some(item) = range.next() else { break };
            let (key, value) = item?;
            len_bytes += key.len() + value.len();
            if !gathered.is_empty() && len_bytes > REPLY_BYTES_MAX {
                return Err(Refusal::ReplyLength { len_bytes_max: REPLY_BYTES_MAX, accepts_limit: true });
            }
            gathered.push((key, value));
        }
    }
    Ok(gathered)
}
