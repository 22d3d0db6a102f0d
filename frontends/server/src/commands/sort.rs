//! SORT and SORT_RO: the elements of a list, set or sorted set, ordered by themselves or by other keys.

use std::cmp::Ordering;
use std::ops::{ControlFlow, Range};

use super::members;
use super::sorted_sets::arguments::number;
use crate::errors::{FixedError, Refusal};
use crate::execution::call::{Call, Function};
use crate::execution::gathered::Gathered;
use crate::keyspace::collections::layout::hashed;
use crate::keyspace::collections::list::{End, List, ListEdit};
use crate::keyspace::collections::sorted_set::{SortedSet, everything};
use crate::keyspace::collections::{Collection, CollectionType};
use crate::observers::events::LIST;

/// Functions of these commands, by the names of their table rows.
pub(super) const FUNCTIONS: &[(&str, Function)] = functions![sort, sort_ro];

/// The options of a request.
struct Query<'a> {
    is_descending: bool,
    is_by_text: bool,
    offset: i64,
    /// Negative if there is no limit.
    count: i64,
    /// A pattern without `*` leaves the elements in their own order.
    by: Option<&'a [u8]>,
    gets: Vec<&'a [u8]>,
    /// The index of the argument that is the destination.
    stored: Option<usize>,
}

impl<'a> Query<'a> {
    fn parse(call: &Call<'a>, may_store: bool) -> Result<Query<'a>, Refusal> {
        let mut query = Query {
            is_descending: false,
            is_by_text: false,
            offset: 0,
            count: -1,
            by: None,
            gets: Vec::new(),
            stored: None,
        };
        let mut index = 2;
        while index < call.request.len() {
            let following_count = call.request.len() - index - 1;
            match call.argument(index).to_ascii_lowercase().as_slice() {
                b"asc" => query.is_descending = false,
                b"desc" => query.is_descending = true,
                b"alpha" => query.is_by_text = true,
                b"limit" if following_count >= 2 => {
                    (query.offset, query.count) = (call.integer(index + 1)?, call.integer(index + 2)?);
                    index += 2;
                }
                b"store" if may_store && following_count >= 1 => {
                    index += 1;
                    query.stored = Some(index);
                }
                b"by" if following_count >= 1 => {
                    index += 1;
                    let pattern = call.argument(index);
                    check_rights(call, pattern.contains(&b'*'), "BY")?;
                    query.by = Some(pattern);
                }
                b"get" if following_count >= 1 => {
                    index += 1;
                    check_rights(call, true, "GET")?;
                    query.gets.push(call.argument(index));
                }
                _ => return Err(Refusal::Syntax),
            }
            index += 1;
        }
        Ok(query)
    }

    /// Returns whether the elements keep their own order.
    fn keeps_order(&self) -> bool {
        self.by.is_some_and(|pattern| !pattern.contains(&b'*'))
    }

    /// Returns the part of this many elements that is wanted.
    fn wanted(&self, len: usize) -> Range<usize> {
        let start = (self.offset.max(0) as usize).min(len);
        let count = if self.count < 0 { len } else { self.count as usize };
        start..start.saturating_add(count).min(len)
    }
}

/// A pattern names any keys, so its user must be permitted to read all of them.
fn check_rights(call: &Call<'_>, reads_others: bool, option: &str) -> Result<(), Refusal> {
    let may_read_all = call.session.login.user().is_some_and(|user| user.selector.allows_reading_from(b"", b""));
    if may_read_all || !reads_others {
        return Ok(());
    }
    Err(Refusal::Message(format!("{option} option of SORT denied due to insufficient ACL permissions")))
}

/// What an element is ordered by.
enum SortKey {
    Number(f64),
    /// `None` comes first.
    Text(Option<Vec<u8>>),
}

impl SortKey {
    /// Equal numbers are ordered by their elements, as in Redis.
    fn compare(&self, other: &SortKey, elements: (&[u8], &[u8])) -> Ordering {
        match (self, other) {
            (SortKey::Text(one), SortKey::Text(other)) => one.cmp(other),
            (SortKey::Number(one), SortKey::Number(other)) => {
                one.partial_cmp(other).unwrap_or(Ordering::Equal).then_with(|| elements.0.cmp(elements.1))
            }
            (SortKey::Number(_), SortKey::Text(_)) => Ordering::Less,
            (SortKey::Text(_), SortKey::Number(_)) => Ordering::Greater,
        }
    }
}

fn sort(call: &mut Call<'_>) -> Result<(), Refusal> {
    let query = Query::parse(call, true)?;
    answer(call, &query)
}

fn sort_ro(call: &mut Call<'_>) -> Result<(), Refusal> {
    let query = Query::parse(call, false)?;
    answer(call, &query)
}

fn answer(call: &mut Call<'_>, query: &Query<'_>) -> Result<(), Refusal> {
    let mut gathered = Gathered::of(call);
    let elements = sorted(call, query, &mut gathered)?;
    let mut values = Vec::new();
    for element in elements {
        if query.gets.is_empty() {
            values.push(Some(element));
            continue;
        }
        for pattern in &query.gets {
            let value = if *pattern == b"#" { Some(element.clone()) } else { value_of(call, pattern, &element)? };
            gathered.read_and_add(value.as_ref().map_or(0, Vec::len))?;
            values.push(value);
        }
    }
    if let Some(index) = query.stored {
        return members::store(
            call,
            index,
            (CollectionType::List, values.len()),
            (LIST, "sortstore"),
            |edit, changes| {
                let mut edit = ListEdit::of(edit);
                for value in values {
                    edit.push(End::Right, value.unwrap_or_default())?;
                }
                edit.finish(changes)
            },
        );
    }
    call.reply.array(values.len());
    for value in values {
        match value {
            Some(value) => call.reply.bulk(&value),
            None => call.reply.null_bulk(),
        }
    }
    Ok(())
}

/// Returns the wanted elements in their order.
fn sorted(call: &Call<'_>, query: &Query<'_>, gathered: &mut Gathered) -> Result<Vec<Vec<u8>>, Refusal> {
    let Some(found) = call.found(1)? else {
        let is_string = call.store().contains(call.key(1))?;
        return if is_string { Err(FixedError::WrongType.into()) } else { Ok(Vec::new()) };
    };
    let is_set = found.collection_type() == CollectionType::Set;
    let mut elements = elements_of(found, gathered)?;
    if query.keeps_order() && !is_set {
        if query.is_descending {
            elements.reverse();
        }
    } else {
        // A set has no order, so one is chosen that is always the same.
        let by = query.by.filter(|_| !query.keeps_order());
        let is_by_text = query.is_by_text || query.keeps_order();
        let mut keyed = Vec::with_capacity(elements.len());
        for element in elements {
            keyed.push((sort_key(call, by, is_by_text, &element, gathered)?, element));
        }
        keyed.sort_by(|one, other| {
            let order = one.0.compare(&other.0, (&one.1, &other.1));
            if query.is_descending { order.reverse() } else { order }
        });
        elements = keyed.into_iter().map(|(_, element)| element).collect();
    }
    let wanted = query.wanted(elements.len());
    Ok(elements.drain(wanted).collect())
}

fn elements_of(found: Collection<'_>, gathered: &mut Gathered) -> Result<Vec<Vec<u8>>, Refusal> {
    let mut elements = Vec::new();
    let mut add = |element: &[u8], gathered: &mut Gathered| {
        gathered.read_and_add(element.len())?;
        elements.push(element.to_vec());
        Ok(())
    };
    match found.collection_type() {
        CollectionType::List => {
            let list = List::of(found);
            list.each(0..list.len(), false, |_, element| {
                add(element, gathered)?;
                Ok(ControlFlow::Continue(()))
            })?;
        }
        CollectionType::Set => members::each(&found, gathered, |member, _, gathered| add(member, gathered))?,
        CollectionType::SortedSet => {
            for scored in SortedSet::of(found).range(&everything(), false)? {
                add(&scored?.0, gathered)?;
            }
        }
        CollectionType::Hash | CollectionType::Stream => return Err(FixedError::WrongType.into()),
    }
    Ok(elements)
}

fn sort_key(
    call: &Call<'_>,
    by: Option<&[u8]>,
    is_by_text: bool,
    element: &[u8],
    gathered: &mut Gathered,
) -> Result<SortKey, Refusal> {
    let text = match by {
        Some(pattern) => value_of(call, pattern, element)?,
        None => Some(element.to_vec()),
    };
    gathered.read_and_add(text.as_ref().map_or(0, Vec::len))?;
    if is_by_text {
        return Ok(SortKey::Text(text));
    }
    // As in Redis, a missing number is zero.
    let number = text.map_or(Some(0.0), |text| number_of(&text));
    number.map(SortKey::Number).ok_or(FixedError::NotSortable.into())
}

/// As in Redis, white space before a number and everything after a zero byte are ignored, and an empty text is zero.
fn number_of(text: &[u8]) -> Option<f64> {
    let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
    if text.is_empty() { Some(0.0) } else { number(text.trim_ascii_start()) }
}

/// Returns the value of the key that a pattern and an element name: a string, or a field of a hash after `->`.
fn value_of(call: &Call<'_>, pattern: &[u8], element: &[u8]) -> Result<Option<Vec<u8>>, Refusal> {
    let Some(star) = pattern.iter().position(|byte| *byte == b'*') else { return Ok(None) };
    let (before, after) = (&pattern[..star], &pattern[star + 1..]);
    let arrow = after.windows(2).position(|two| two == b"->").filter(|at| at + 2 < after.len());
    let key = [before, element, &after[..arrow.unwrap_or(after.len())]].concat();
    let Some(arrow) = arrow else { return call.store().get(call.namespace().raw(&key)) };
    match call.view().map_or(Ok(None), |view| view.find(&key))? {
        Some(hash) if hash.collection_type() == CollectionType::Hash => hash.get(&hashed(&after[arrow + 2..])),
        _ => Ok(None),
    }
}
