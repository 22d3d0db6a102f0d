//! LPOS: the indices of equal elements of a list.

use std::ops::ControlFlow;

use super::counts;
use super::lists::list;
use crate::errors::{FixedError, Refusal};
use crate::execution::call::{Call, Function};
use crate::execution::gathered::Gathered;
use crate::keyspace::collections::list::List;

/// Functions of these commands, by the names of their table rows.
pub(super) const FUNCTIONS: &[(&str, Function)] = functions![lpos];

/// The options of LPOS.
struct Search {
    rank: i64,
    /// 0 for all matches; `None` for one that is not in an array.
    count: Option<u64>,
    /// The most elements to compare; 0 for all.
    compared_max: u64,
}

impl Search {
    fn of(call: &Call<'_>) -> Result<Search, Refusal> {
        let mut search = Search { rank: 1, count: None, compared_max: 0 };
        let mut options = call.request.arguments().skip(2);
        while let Some(option) = options.next() {
            let value = options.next().ok_or(Refusal::Syntax)?;
            match option.to_ascii_lowercase().as_slice() {
                b"rank" => {
                    let rank = resp::parse_integer(value).ok_or(Refusal::NotAnInteger)?;
                    if rank == i64::MIN {
                        return Err(FixedError::OutOfCounts.into());
                    }
                    search.rank = rank;
                    if rank == 0 {
                        return Err(FixedError::ZeroRank.into());
                    }
                }
                b"count" => search.count = Some(counts::at_least(0, value, FixedError::NegativeCount)?),
                b"maxlen" => search.compared_max = counts::at_least(0, value, FixedError::NegativeMaxlen)?,
                _ => return Err(Refusal::Syntax),
            }
        }
        Ok(search)
    }

    /// Returns the indices of the matches.
    fn matches(&self, call: &Call<'_>, list: &List<'_>, value: &[u8]) -> Result<Vec<u64>, Refusal> {
        let (len, mut skipped, mut found) = (list.len(), self.rank.unsigned_abs() - 1, Vec::new());
        let compared = if self.compared_max == 0 { len } else { self.compared_max.min(len) };
        let indices = if self.rank > 0 { 0..compared } else { len - compared..len };
        let mut gathered = Gathered::of(call);
        list.each(indices, self.rank < 0, |index, element| {
            gathered.read(element.len())?;
            if element == value {
                match skipped {
                    0 => found.push(index),
                    _ => skipped -= 1,
                }
            }
            let is_done = self.count != Some(0) && found.len() as u64 == self.count.unwrap_or(1);
            Ok(if is_done { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })?;
        Ok(found)
    }
}

fn lpos(call: &mut Call<'_>) -> Result<(), Refusal> {
    let search = Search::of(call)?;
    let found = list(call, 1)?.map_or(Ok(Vec::new()), |list| search.matches(call, &list, call.argument(2)))?;
    match (search.count, found.first()) {
        (Some(_), _) => {
            call.reply.array(found.len());
            found.iter().for_each(|index| call.reply.integer(*index as i64));
        }
        (None, Some(index)) => call.reply.integer(*index as i64),
        (None, None) => call.reply.null_bulk(),
    }
    Ok(())
}
