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

use crate::execution::call::Function;

/// Functions of these commands, by the names of their table rows.
pub(super) const FUNCTIONS: [&[(&str, Function)]; 6] =
    [add::FUNCTIONS, algebra::FUNCTIONS, pop::FUNCTIONS, ranges::FUNCTIONS, read::FUNCTIONS, remove::FUNCTIONS];
