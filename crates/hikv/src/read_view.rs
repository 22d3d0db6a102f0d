//! All items while none of them changes: at a snapshot, or of a store that is only read.

use std::ops::ControlFlow;

use engine::{Cursor, Damage, OnItem};

use crate::{Error, Expiry, Snapshot, Store};

/// A store's items at one moment. An engine without snapshots has them while its store is open for reading alone.
#[derive(Clone, Debug)]
pub enum ReadView {
    /// At a snapshot, while the store is written on.
    Snapshot(Snapshot),
    /// Of a store that nobody can write to.
    ReadOnly(Store),
}

impl Store {
    /// The items as they are now, which no write changes any more.
    ///
    /// # Errors
    /// See [`Store::snapshot`]. [`Error::Unsupported`] where the engine has no snapshots and the store is open for writing.
    pub fn read_view(&self) -> Result<ReadView, Error> {
        match self.snapshot() {
            Err(Error::Unsupported { .. }) if self.is_read_only() => Ok(ReadView::ReadOnly(self.clone())),
            snapshot => snapshot.map(ReadView::Snapshot),
        }
    }
}

impl ReadView {
    /// Shows every item to `each`, with when it expires, exactly once and in no order, until it says to stop.
    ///
    /// # Errors
    /// See [`Error`]; a damaged item ends the walk.
    pub fn for_each(&self, each: impl FnMut(&[u8], &[u8], Expiry) -> ControlFlow<()>) -> Result<(), Error> {
        match self {
            ReadView::Snapshot(snapshot) => snapshot.for_each_with_expiry(each),
            ReadView::ReadOnly(store) => walk(each, |cursor, show| store.engine()?.walk(cursor, show)),
        }
    }

    /// As [`ReadView::for_each`], without the items that are damaged, each of which is told to `damaged`.
    ///
    /// # Errors
    /// See [`Error`]; at a snapshot a part of the store that cannot be read is one. Of a store that is only read such a part is left out, too.
    pub fn for_each_skipping_damage(
        &self,
        each: impl FnMut(&[u8], &[u8], Expiry) -> ControlFlow<()>,
        mut damaged: impl FnMut(Damage),
    ) -> Result<(), Error> {
        match self {
            ReadView::Snapshot(snapshot) => snapshot.for_each_skipping_damage(each, damaged),
            ReadView::ReadOnly(store) => walk(each, |cursor, show| {
                store.engine()?.walk_skipping_damage(cursor, show, &mut |error| report_damage(error, &mut damaged))
            }),
        }
    }
}

/// Takes the steps of a walk until its end, or until `each` says to stop.
fn walk(
    mut each: impl FnMut(&[u8], &[u8], Expiry) -> ControlFlow<()>,
    mut step: impl FnMut(Cursor, &mut OnItem<'_>) -> Result<Cursor, Error>,
) -> Result<(), Error> {
    let (mut cursor, mut flow) = (Cursor::default(), ControlFlow::Continue(()));
    while !cursor.is_done() && flow.is_continue() {
        cursor = step(cursor, &mut |key, value, expiry| {
            if flow.is_continue() {
                flow = each(key, value, expiry);
            }
        })?;
    }
    Ok(())
}

/// Tells of damage; other errors stay errors.
pub(crate) fn report_damage(error: Error, damaged: &mut dyn FnMut(Damage)) -> Result<(), Error> {
    match error {
        Error::Corrupt { offset, what } => {
            damaged(Damage { offset, what: what.into() });
            Ok(())
        }
        other => Err(other),
    }
}
