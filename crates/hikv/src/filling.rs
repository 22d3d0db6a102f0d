//! Filling a new store with another store's items.

use std::ops::ControlFlow;

use engine::{Damage, Error, Expiry};

use crate::backup::BackupProgress;
use crate::backup_error::BackupError;
use crate::{CallbackReply, ReadView, Store};

/// The most items put together. At this number the fixed cost of a batch, a few fences, is small compared with its
/// items.
const TOGETHER_COUNT_MAX: usize = 256;
/// The most bytes of keys and values put together: a core's own cache holds that many.
const TOGETHER_BYTES_MAX: usize = 256 << 10;
/// Items of at least this size are put separately: copying them costs more than their fences.
const ALONE_BYTES_MIN: usize = 64 << 10;

/// Items on their way into a store. They are copied, because each is visible only during its callback.
struct Filling<'s, P> {
    to: &'s Store,
    /// Keys and values, one after the other.
    bytes: Vec<u8>,
    /// The lengths of each item's key and value.
    lens: Vec<(usize, usize)>,
    done: BackupProgress,
    progress: P,
    is_stopped: bool,
}

/// Puts the items of `from`, those of all trees, into `to` and returns their number. With `damaged`, skips damaged
/// items and reports them.
pub(crate) fn write_items<A: CallbackReply>(
    from: &ReadView,
    items_total: u64,
    to: &Store,
    mut progress: impl FnMut(BackupProgress) -> A,
    damaged: Option<&mut dyn FnMut(Damage)>,
) -> Result<u64, BackupError> {
    let from = from.stored();
    let marked = if from.has_trees()? { to.keyspace().change(|engine| engine.set_has_trees()) } else { Ok(()) };
    marked.map_err(|error| BackupError::Write { path: to.path().to_owned(), error })?;
    let done = BackupProgress { items: 0, items_total };
    let progress = |at| progress(at).flow().is_continue();
    let mut filling = Filling { to, bytes: Vec::new(), lens: Vec::new(), done, progress, is_stopped: false };
    let mut written = Ok(());
    let each = |key: &[u8], value: &[u8], expiry: Expiry| {
        written = filling.add(key, value, expiry);
        if written.is_ok() && !filling.is_stopped { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    match damaged {
        Some(damaged) => from.for_each_skipping_damage(each, damaged),
        None => from.for_each(each),
    }?;
    match written.and_then(|()| filling.put_all()) {
        Ok(()) if filling.is_stopped => Err(BackupError::Stopped),
        Ok(()) => Ok(filling.done.items),
        Err(error) => Err(BackupError::Write { path: to.path().to_owned(), error }),
    }
}

impl<P: FnMut(BackupProgress) -> bool> Filling<'_, P> {
    fn add(&mut self, key: &[u8], value: &[u8], expiry: Expiry) -> Result<(), Error> {
        let len_bytes = key.len() + value.len();
        if self.lens.len() == TOGETHER_COUNT_MAX || self.bytes.len() + len_bytes > TOGETHER_BYTES_MAX {
            self.put_all()?;
        }
        if !expiry.is_never() || len_bytes >= ALONE_BYTES_MIN {
            self.to.keyspace().change(|engine| engine.put_until(key, value, expiry))?;
            self.report_progress(1);
            return Ok(());
        }
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value);
        self.lens.push((key.len(), value.len()));
        Ok(())
    }

    /// Puts all added items.
    fn put_all(&mut self) -> Result<(), Error> {
        let mut rest = &self.bytes[..];
        let items = self.lens.iter().map(|&(key_bytes, value_bytes)| {
            let (key, behind) = rest.split_at(key_bytes);
            let (value, others) = behind.split_at(value_bytes);
            rest = others;
            (key, value)
        });
        let items: Vec<_> = items.collect();
        self.to.keyspace().change(|engine| engine.fill(&items))?;
        let count = items.len();
        self.bytes.clear();
        self.lens.clear();
        self.report_progress(count);
        Ok(())
    }

    fn report_progress(&mut self, count: usize) {
        for _ in 0..count {
            self.done.items += 1;
            self.is_stopped |= !(self.progress)(self.done);
        }
    }
}
