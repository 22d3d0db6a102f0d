//! Reading keys and ranges again, to find out whether they have changed.

use std::ops::ControlFlow;

use engine::{Early, Error};
use epoch::Start;

use super::part::Part;
use super::reads::{RangePart, RangeRead, Rows};
use crate::Tree;
use crate::ordered::walk;

/// Returns [`Error::Conflict`] if a key that was read has another version now, or a tree another space.
pub(super) fn check_all(parts: &[Part<'_>], start: Start) -> Result<(), Error> {
    for part in parts {
        for point in part.points() {
            if !part.is_unchanged(point, start)? {
                return Err(Error::Conflict);
            }
        }
    }
    check_spaces(parts)
}

pub(super) fn check_spaces(parts: &[Part<'_>]) -> Result<(), Error> {
    for part in parts {
        if part.tree().keyspace().space()? != part.space() {
            return Err(Error::Conflict);
        }
    }
    Ok(())
}

/// Reads the ranges again, and returns [`Error::Conflict`] if an item has changed, come or gone. Adds all their keys to
/// `keys`, with the numbers of their parts.
pub(super) fn read_again(parts: &[Part<'_>], mut keys: Option<&mut Vec<(usize, Vec<u8>)>>) -> Result<(), Error> {
    check_spaces(parts)?;
    for (number, part) in parts.iter().enumerate() {
        for read in part.ranges().flat_map(RangeRead::parts) {
            let note = |key: &[u8]| keys.iter_mut().for_each(|keys| keys.push((number, key.to_vec())));
            match is_unchanged(part.tree(), &read, note) {
                Ok(true) => {}
                // An error means that the order was lost, and would have to be built again.
                Ok(false) | Err(Error::NotOrderedYet { .. }) => return Err(Error::Conflict),
                Err(error) => return Err(error),
            }
        }
    }
    Ok(())
}

fn is_unchanged(tree: &Tree, read: &RangePart<'_>, mut note: impl FnMut(&[u8])) -> Result<bool, Error> {
    let (bounds, mut now) = (&read.bounds, Rows::default());
    let has_another = walk(tree, Early::Refuse, bounds.start(read.direction), read.direction, |key, value| {
        let is_within = bounds.contains(key);
        if !is_within || now.row_count() == read.rows.row_count() {
            return ControlFlow::Break(is_within);
        }
        now.add(key, value);
        note(key);
        ControlFlow::Continue(())
    })?;
    Ok(has_another != Some(true) && now.is_same(read.rows))
}
