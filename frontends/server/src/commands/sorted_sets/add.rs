//! ZADD and ZINCRBY.

use super::arguments::{score, sorted_set};
use crate::errors::{FixedError, Refusal};
use crate::execution::call::{Call, Function};
use crate::keyspace::collections::CollectionType;
use crate::keyspace::collections::sorted_set::SortedSetEdit;
use crate::observers::events::ZSET;

pub(in crate::commands) const FUNCTIONS: &[(&str, Function)] = functions![zadd, zincrby];

/// The options of ZADD.
#[derive(Default)]
struct Options {
    /// NX: scores of members stay.
    only_new: bool,
    /// XX: no member is added.
    only_existing: bool,
    /// GT: scores only grow.
    only_greater: bool,
    /// LT: scores only fall.
    only_less: bool,
    /// CH: changed members count.
    counts_changed: bool,
    /// INCR: scores are added.
    adds: bool,
}

impl Options {
    /// Parses the options, and returns the index of the first score.
    fn of(call: &Call<'_>) -> Result<(Options, usize), Refusal> {
        let (mut options, mut index) = (Options::default(), 2);
        while index < call.request.len() {
            match call.argument(index).to_ascii_lowercase().as_slice() {
                b"nx" => options.only_new = true,
                b"xx" => options.only_existing = true,
                b"gt" => options.only_greater = true,
                b"lt" => options.only_less = true,
                b"ch" => options.counts_changed = true,
                b"incr" => options.adds = true,
                _ => break,
            }
            index += 1;
        }
        let count = call.request.len() - index;
        if count == 0 || !count.is_multiple_of(2) {
            return Err(Refusal::Syntax);
        }
        if options.only_new && options.only_existing {
            return Err(FixedError::XxNx.into());
        }
        let comparison_count = [options.only_new, options.only_greater, options.only_less].map(usize::from);
        if comparison_count.iter().sum::<usize>() > 1 {
            return Err(FixedError::GtLtNx.into());
        }
        if options.adds && count > 2 {
            return Err(FixedError::SinglePair.into());
        }
        Ok((options, index))
    }

    /// Returns the score that a member is to have; `None` if the options forbid the change.
    fn new_score(&self, old: Option<f64>, given: f64) -> Result<Option<f64>, Refusal> {
        let Some(old) = old else { return Ok((!self.only_existing).then_some(given)) };
        if self.only_new {
            return Ok(None);
        }
        let new = if self.adds { old + given } else { given };
        if new.is_nan() {
            return Err(FixedError::NanScore.into());
        }
        let is_forbidden = self.only_less && new >= old || self.only_greater && new <= old;
        Ok((!is_forbidden).then_some(new))
    }
}

fn zadd(call: &mut Call<'_>) -> Result<(), Refusal> {
    let (options, first) = Options::of(call)?;
    add(call, &options, first)
}

fn zincrby(call: &mut Call<'_>) -> Result<(), Refusal> {
    add(call, &Options { adds: true, ..Options::default() }, 2)
}

/// Adds all members in one step, and replies.
fn add(call: &mut Call<'_>, options: &Options, first: usize) -> Result<(), Refusal> {
    let pairs = (first..call.request.len()).step_by(2);
    let pairs = pairs.map(|index| Ok((score(call.argument(index))?, call.argument(index + 1))));
    let pairs = pairs.collect::<Result<Vec<_>, Refusal>>()?;
    let (mut added_count, mut changed_count, mut last) = (0, 0, None);
    if !options.only_existing || sorted_set(call, 1)?.is_some() {
        let mut edit = SortedSetEdit::of(call.edit(1, CollectionType::SortedSet)?);
        for (given, member) in pairs {
            let old = edit.score(member)?;
            let Some(new) = options.new_score(old, given)? else { continue };
            last = Some(new);
            if old != last {
                edit.put(member, old, new)?;
                *if old.is_none() { &mut added_count } else { &mut changed_count } += 1;
            }
        }
        let count = added_count + changed_count;
        if count > 0 {
            edit.write()?;
            let event = if options.adds { "zincr" } else { "zadd" };
            call.changed_key(count, ZSET, event, call.session.db, call.argument(1));
        }
    }
    match last {
        _ if !options.adds => {
            call.reply.integer((added_count + if options.counts_changed { changed_count } else { 0 }) as i64);
        }
        Some(score) => call.reply.double(score),
        None => call.reply.null_bulk(),
    }
    Ok(())
}
