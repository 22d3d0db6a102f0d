//! A collection in the form of Redis' dumps.

use std::ops::ControlFlow;

use super::layout::member_of;
use super::list::List;
use super::sorted_set::SortedSet;
use super::{Collection, CollectionType};
use crate::errors::{FixedError, Refusal};

impl Collection<'_> {
    /// Calls `each` with every element, encoded as after the number of elements ([`Collection::len`]).
    ///
    /// # Errors
    /// Those of `each`; [`FixedError::DamagedCollection`] if the elements are more or fewer than this number.
    pub(crate) fn each_dumped<E: From<Refusal>>(self, mut each: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        let (collection_type, mut left_count) = (self.collection_type(), self.len());
        let mut encoded = Vec::new();
        let mut counted = |encoded: &[u8]| {
            left_count = left_count.checked_sub(1).ok_or_else(damaged)?;
            each(encoded)
        };
        match collection_type {
            CollectionType::Hash | CollectionType::Set => {
                for item in self.elements()? {
                    let (element, value) = item?;
                    encoded.clear();
                    rdb::put_string(&mut encoded, member_of(&element).1);
                    if collection_type == CollectionType::Hash {
                        rdb::put_string(&mut encoded, &value);
                    }
                    counted(&encoded)?;
                }
            }
            CollectionType::List => {
                let (list, mut outcome) = (List::of(self), Ok(()));
                list.each(0..list.len(), false, |_, value| {
                    encoded.clear();
                    rdb::put_string(&mut encoded, value);
                    outcome = counted(&encoded);
                    Ok(if outcome.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
                })?;
                outcome?;
            }
            CollectionType::Stream => return Err(Refusal::from(FixedError::StreamDump).into()),
            CollectionType::SortedSet => {
                for item in SortedSet::of(self).all()? {
                    let (member, score) = item?;
                    encoded.clear();
                    rdb::put_string(&mut encoded, &member);
                    rdb::put_score(&mut encoded, score);
                    counted(&encoded)?;
                }
            }
        }
        if left_count == 0 { Ok(()) } else { Err(damaged().into()) }
    }
}

fn damaged() -> Refusal {
    FixedError::DamagedCollection.into()
}
