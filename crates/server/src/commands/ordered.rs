//! PREFIX and RANGE: items in the order of their keys.

use std::ops::Bound;

use hikv::{Error, Item, Ordered, Range};

use super::{Action, Call, Command, Keys};
use crate::errors::Refusal;
use crate::shared::Shared;

pub(super) static PREFIX: Command = Command {
    name: "prefix",
    arity: -2,
    flags: &["readonly"],
    keys: Keys::NONE,
    group: "generic",
    summary: "Return the keys that begin with a prefix, and their values, in order",
    complexity: "O(log(N)+M) where N is the number of keys, and M the number of those returned",
    since: "0.1.0",
    action: Action::Apply(prefix),
};

pub(super) static RANGE: Command = Command {
    name: "range",
    arity: -3,
    flags: &["readonly"],
    keys: Keys::NONE,
    group: "generic",
    summary: "Return the keys between two keys, and their values, in order",
    complexity: "O(log(N)+M) where N is the number of keys, and M the number of those returned",
    since: "0.1.0",
    action: Action::Apply(range),
};

/// What one reply may hold; it is made in one go, and others wait meanwhile.
const REPLY_BYTES_MAX: usize = 64 << 20;

/// Keys that are put in order within a few milliseconds: a range that comes early waits for them.
const AWAITED_COUNT_MAX: u64 = 1 << 14;

/// What stands after the keys.
struct Options {
    limit: usize,
    reverse: bool,
}

fn prefix(call: &mut Call<'_>) -> Result<(), Refusal> {
    let options = Options::of(call, 2)?;
    let range = open(call.shared, |ordered| ordered.prefix(call.request.argument(1)))?;
    reply(call, range, &options)
}

/// Both ends are within. As in Redis, the walk begins at the first of them, which in reverse is the upper one.
fn range(call: &mut Call<'_>) -> Result<(), Refusal> {
    let options = Options::of(call, 3)?;
    let (first, last) = (call.request.argument(1), call.request.argument(2));
    let (low, high) = if options.reverse { (last, first) } else { (first, last) };
    // Nothing lies above the end of all keys, or below their beginning.
    let is_empty = low == b"+" || high == b"-";
    let range = open(call.shared, |ordered| ordered.range::<&[u8]>((end(low), end(high))))?;
    reply(call, (!is_empty).then_some(range).into_iter().flatten(), &options)
}

/// The end of a range: a key, or one of the ends of all keys.
fn end(argument: &[u8]) -> Bound<&[u8]> {
    if matches!(argument, b"-" | b"+") { Bound::Unbounded } else { Bound::Included(argument) }
}

impl Options {
    /// The options from the `first` argument on.
    fn of(call: &Call<'_>, first: usize) -> Result<Options, Refusal> {
        let mut options = Options { limit: usize::MAX, reverse: false };
        let mut arguments = call.request.arguments().skip(first - 1);
        while let Some(name) = arguments.next() {
            match name.to_ascii_lowercase().as_slice() {
                b"rev" => options.reverse = true,
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

/// Waits for keys that will soon be in order. Many take their time, in which the other clients are served: those who ask
/// early are refused.
fn open(shared: &Shared, open: impl Fn(&Ordered) -> Result<Range, Error>) -> Result<Range, Refusal> {
    let order = shared.order.as_ref().ok_or(Error::HashOnly)?;
    match open(&order.refusing) {
        Err(Error::NotOrderedYet { .. }) if shared.store.len()? <= AWAITED_COUNT_MAX => Ok(open(&order.waiting)?),
        range => Ok(range?),
    }
}

/// Replies with keys and values in turn.
fn reply(
    call: &mut Call<'_>,
    range: impl DoubleEndedIterator<Item = Result<Item, Error>>,
    options: &Options,
) -> Result<(), Refusal> {
    let items =
        if options.reverse { gather(range.rev().take(options.limit))? } else { gather(range.take(options.limit))? };
    call.reply.array(2 * items.len());
    for part in items.iter().flat_map(|(key, value)| [key, value]) {
        call.reply.bulk(part);
    }
    Ok(())
}

/// One item is taken whatever its length.
fn gather(range: impl Iterator<Item = Result<Item, Error>>) -> Result<Vec<Item>, Refusal> {
    let (mut items, mut len_bytes) = (Vec::new(), 0);
    for item in range {
        let (key, value) = item?;
        len_bytes += key.len() + value.len();
        if !items.is_empty() && len_bytes > REPLY_BYTES_MAX {
            return Err(Refusal::ReplyLength { len_bytes_max: REPLY_BYTES_MAX });
        }
        items.push((key, value));
    }
    Ok(items)
}
