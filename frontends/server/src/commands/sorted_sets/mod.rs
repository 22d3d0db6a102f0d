//! Sorted sets, by what their commands do.

mod add;
mod algebra;
mod arguments;
mod pop;
mod range;
mod ranges;
mod read;
mod remove;
mod replies;

use crate::errors::Refusal;
use crate::execution::call::{Call, Function};
use crate::keyspace::collections::CollectionType;
use crate::keyspace::collections::sorted_set::SortedSet;

/// Functions of these commands, by the names of their table rows.
pub(super) const FUNCTIONS: [&[(&str, Function)]; 6] =
    [add::FUNCTIONS, algebra::FUNCTIONS, pop::FUNCTIONS, ranges::FUNCTIONS, read::FUNCTIONS, remove::FUNCTIONS];

/// Returns the sorted set whose key is argument number `index`; `None` if the key does not exist.
fn sorted_set<'a>(call: &Call<'a>, index: usize) -> Result<Option<SortedSet<'a>>, Refusal> {
    Ok(call.collection(index, CollectionType::SortedSet)?.map(SortedSet::of))
}
