//! A new collection from the parts of a dumped value.

use hikv::{Expiry, Limits};
use rdb::Part;

use super::layout::hashed;
use super::list::{End, ListEdit};
use super::sorted_set::SortedSetEdit;
use super::view::{Changes, View};
use super::{CollectionType, Edit};
use crate::errors::{FixedError, Refusal};

/// A new collection, whose record is written with its last elements.
pub(crate) struct Filling<'a> {
    elements: Elements<'a>,
    /// As a batch counts the elements that are not written, without the prefixes of their keys.
    len_bytes: u64,
}

enum Elements<'a> {
    Members(Edit<'a>),
    List(ListEdit<'a>),
    SortedSet(SortedSetEdit<'a>),
}

impl<'a> Filling<'a> {
    /// Begins a collection. The key is neither a collection nor a string, or loses its value in the same step.
    pub(crate) fn begin(view: View<'a>, key: &[u8], collection_type: CollectionType) -> Result<Filling<'a>, Refusal> {
        let edit = view.make(key, collection_type)?;
        let elements = match collection_type {
            CollectionType::Hash | CollectionType::Set => Elements::Members(edit),
            CollectionType::List => Elements::List(ListEdit::of(edit)),
            CollectionType::SortedSet => Elements::SortedSet(SortedSetEdit::of(edit)),
            CollectionType::Stream => return Err(FixedError::StreamDump.into()),
        };
        Ok(Filling { elements, len_bytes: 0 })
    }

    /// Adds an element; returns the number of its bytes.
    ///
    /// # Errors
    /// [`FixedError::BadFormat`] if there is one already, or it belongs to another type;
    /// [`hikv::Error::BatchTooLong`] once the elements are more than a batch may have.
    pub(crate) fn add(&mut self, part: Part) -> Result<usize, Refusal> {
        let (len_bytes, item_count) = match &part {
            Part::String(string) | Part::Element(string) | Part::Member(string) => (string.len(), 1),
            Part::Field(field, value) => (field.len() + value.len(), 1),
            // By the member and by the score.
            Part::Scored(member, _) => (2 * member.len(), 2),
        };
        self.len_bytes += len_bytes as u64 + item_count * Limits::BATCH_OP_BYTES;
        if self.len_bytes > Limits::BATCH_BYTES_MAX {
            return Err(hikv::Error::BatchTooLong { len_bytes: self.len_bytes }.into());
        }
        if self.put(part)? { Ok(len_bytes) } else { Err(FixedError::BadFormat.into()) }
    }

    /// Returns false if there is such an element already, or the collection has another type.
    fn put(&mut self, part: Part) -> Result<bool, Refusal> {
        match (&mut self.elements, part) {
            (Elements::Members(edit), Part::Member(member)) => edit.put_if_absent(hashed(&member), Vec::new()),
            (Elements::Members(edit), Part::Field(field, value)) => edit.put_if_absent(hashed(&field), value),
            (Elements::List(edit), Part::Element(value)) => edit.push(End::Right, value).map(|()| true),
            (Elements::SortedSet(edit), Part::Scored(member, score)) => {
                let is_new = edit.score(&member)?.is_none();
                if is_new {
                    edit.put(&member, None, score)?;
                }
                Ok(is_new)
            }
            _ => Ok(false),
        }
    }

    /// Writes the elements so far, if a batch of them has at least this size. Only for a loader, which has the store
    /// for itself.
    pub(crate) fn write_ahead(&mut self, len_bytes_min: u64) -> Result<(), Refusal> {
        if self.len_bytes < len_bytes_min {
            return Ok(());
        }
        self.len_bytes = 0;
        match &mut self.elements {
            Elements::Members(edit) => edit,
            Elements::List(edit) => edit.inner(),
            Elements::SortedSet(edit) => edit.inner(),
        }
        .write_ahead()
    }

    /// Adds the collection to changes, which are written in one step.
    pub(crate) fn finish(self, expiry: Expiry, changes: &mut Changes) -> Result<(), Refusal> {
        let mut edit = match self.elements {
            Elements::Members(edit) => edit,
            Elements::List(edit) => edit.into_inner(),
            Elements::SortedSet(edit) => edit.into_inner(),
        };
        edit.expire(expiry);
        edit.finish(changes)
    }
}
