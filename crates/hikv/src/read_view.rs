//! Unchanging views of a store's items: of a snapshot, or of a store opened for reading.

use catalog::Space;
use engine::{Cursor, Damage, OnItem};

#[cfg(doc)]
use crate::Tree;
use crate::reply::keep;
use crate::tree::stored_keys;
use crate::{CallbackReply, Error, Expiry, Snapshot, Store};

/// All items of a store at one moment. An engine without snapshots provides it for stores opened for reading only.
#[derive(Clone, Debug)]
pub enum ReadView {
    /// The items of a snapshot; the store may be written to.
    Snapshot(Snapshot),
    /// The items of a store that no process has open for writing.
    ReadOnly(Store),
}

impl ReadView {
    /// Calls `each` with every item and its expiry, exactly once and in no order, until it returns `Break`; returns the
    /// value of the `Break`.
    ///
    /// # Errors
    /// [`Error::Corrupt`] at the first damaged item; otherwise as for [`Tree::get`].
    pub fn for_each<R: CallbackReply>(
        &self,
        each: impl FnMut(&[u8], &[u8], Expiry) -> R,
    ) -> Result<Option<R::Break>, Error> {
        match self {
            ReadView::Snapshot(snapshot) => snapshot.for_each_with_expiry(each),
            ReadView::ReadOnly(store) => {
                walk(store.keyspace().space()?, each, |cursor, show| store.inner().engine()?.walk(cursor, show))
            }
        }
    }

    /// Returns the view of the tree of this name, or `None`.
    ///
    /// # Errors
    /// As for [`Tree::get`].
    pub fn tree(&self, name: impl AsRef<str>) -> Result<Option<ReadView>, Error> {
        match self {
            ReadView::Snapshot(snapshot) => Ok(snapshot.tree(name)?.map(ReadView::Snapshot)),
            ReadView::ReadOnly(store) => {
                Ok(store.existing_tree(name)?.map(|tree| ReadView::ReadOnly(Store::new(tree))))
            }
        }
    }

    /// Returns the view of all stored keys, those of every tree and of the catalog.
    #[doc(hidden)]
    #[must_use]
    pub fn stored(&self) -> ReadView {
        match self {
            ReadView::Snapshot(snapshot) => ReadView::Snapshot(snapshot.stored()),
            ReadView::ReadOnly(store) => ReadView::ReadOnly(Store::new(stored_keys(store))),
        }
    }

    pub(crate) fn has_trees(&self) -> Result<bool, Error> {
        let store = match self {
            ReadView::Snapshot(snapshot) => snapshot.store(),
            ReadView::ReadOnly(store) => store,
        };
        Ok(store.inner().engine()?.has_trees())
    }

    /// Like [`ReadView::for_each`], but skips damaged items and reports each to `damaged`.
    ///
    /// # Errors
    /// As for [`Tree::get`]. At a snapshot, an unreadable part of the store is an error; of a read-only store it is
    /// skipped and reported as well.
    pub fn for_each_skipping_damage<R: CallbackReply>(
        &self,
        each: impl FnMut(&[u8], &[u8], Expiry) -> R,
        mut damaged: impl FnMut(Damage),
    ) -> Result<Option<R::Break>, Error> {
        match self {
            ReadView::Snapshot(snapshot) => snapshot.for_each_skipping_damage(each, damaged),
            ReadView::ReadOnly(store) => walk(store.keyspace().space()?, each, |cursor, show| {
                store
                    .inner()
                    .engine()?
                    .walk_skipping_damage(cursor, show, &mut |error| report_damage(error, &mut damaged))
            }),
        }
    }
}

/// Steps through a walk of a tree's keys until its end, or until `each` returns `Break`; returns the value of the
/// `Break`.
pub(crate) fn walk<R: CallbackReply>(
    space: Space,
    mut each: impl FnMut(&[u8], &[u8], Expiry) -> R,
    mut step: impl FnMut(Cursor, &mut OnItem<'_>) -> Result<Cursor, Error>,
) -> Result<Option<R::Break>, Error> {
    let (mut cursor, mut stopped) = (Cursor::default(), None);
    while !cursor.is_done() && stopped.is_none() {
        cursor = step(cursor, &mut |stored, value, expiry| {
            if let Some(key) = space.key_of(stored).filter(|_| stopped.is_none()) {
                let _ = keep(each(key, value, expiry), &mut stopped);
            }
        })?;
    }
    Ok(stopped)
}

/// Reports damage to `damaged`, and returns other errors.
pub(crate) fn report_damage(error: Error, damaged: &mut dyn FnMut(Damage)) -> Result<(), Error> {
    match error {
        Error::Corrupt { offset, what } => {
            damaged(Damage { offset, what: what.into() });
            Ok(())
        }
        other => Err(other),
    }
}
