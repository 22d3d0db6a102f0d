//! The first batch of a catalog.
//!
//! Before it, nameless keys may look like those of trees. It renames them, so that from then on a key's first bytes say
//! which tree it belongs to.
//!
//! | step | a crash after it leaves |
//! |---|---|
//! | 1 the caller keeps all threads from nameless keys that look marked | the store as it was |
//! | 2 the region's flag *trees* | the store as it was, for programs that know the flag |
//! | 3 read the nameless keys that look marked, and the server's table of databases | as after 2 |
//! | 4 one batch: these keys under `FF 00`, the databases' names, the head | the catalog |
//!
//! In a store with the server's table, keys that look marked already have the form of the catalog. Exception: those
//! that begin with `FF` and a byte from 11 to 1F, which the server stores as they are.

use std::ops::{Bound, ControlFlow};

use engine::{Cursor, Direction, Early, Error, OrderState, ScanCursor};

use crate::changes::Batch;
use crate::names::{Catalog, TABLE_KEY, damaged};
use crate::record::{HEAD_KEY, Head, TreeRecord, id_key, name_key};
use crate::space::Space;
use crate::tree_id::{CATALOG, MARK, MARKED_MAX, is_marked};

impl Catalog<'_> {
    /// Begins the catalog, unless the store has one. No other thread may use nameless keys that look marked
    /// ([`is_marked`]) during the call.
    ///
    /// # Errors
    /// [`Error::KeyTooLong`] or [`Error::BatchTooLong`] if keys that look marked cannot be renamed; otherwise as for
    /// [`engine::Atomic::write_batch_if`]. The store has no catalog, and all its keys are unchanged.
    pub fn begin(self) -> Result<(), Error> {
        let mut tries = 0;
        while !self.is_begun()? {
            match self.try_to_begin() {
                // The background may have moved an item, or an item has expired.
                Err(Error::ConditionFailed { .. }) if tries < 1_000 => tries += 1,
                result => return result,
            }
        }
        Ok(())
    }

    fn try_to_begin(self) -> Result<(), Error> {
        self.engine.set_has_trees()?;
        let (mut batch, mut renamed) = (Batch::default(), Vec::new());
        let databases = self.databases()?;
        for key in self.marked_keys()? {
            if !databases.is_empty() && key[1] <= CATALOG {
                continue;
            }
            let Some((version, value)) = self.read(&key)? else { continue };
            let Some(expiry) = self.engine.expiry(&key)? else { continue };
            batch.expect(&key, Some(version));
            batch.delete(&key);
            renamed.push((Space::Nameless.with_stored(&key, <[u8]>::to_vec), value, expiry));
        }
        if !databases.is_empty() {
            let (version, _) = self.read(&TABLE_KEY)?.ok_or(damaged("the server's table of databases"))?;
            batch.expect(&TABLE_KEY, Some(version));
            batch.delete(&TABLE_KEY);
        }
        // The new name of one key may be the old one of another: of two operations on a key, the last counts.
        renamed.into_iter().for_each(|(key, value, expiry)| batch.put_until(key, value, expiry));
        let mut head = Head::NEW;
        for database in databases {
            batch.put(name_key(&database.name), TreeRecord::new(database.id, self.now_ms()).bytes());
            batch.put(id_key(database.id), database.name.into_bytes());
            head.tree_count += 1;
        }
        batch.put(HEAD_KEY.to_vec(), head.bytes());
        batch.write(self.engine)
    }

    /// Returns the stored keys that look marked, in no order.
    fn marked_keys(self) -> Result<Vec<Vec<u8>>, Error> {
        let mut keys = Vec::new();
        let is_ready = self.engine.stats().order.is_some_and(|order| order.state == OrderState::Ready);
        if let Some(ordered) = self.engine.ordered().filter(|_| is_ready) {
            ordered.catch_up(Early::Wait)?;
            let mut cursor = ScanCursor::new(Bound::Included(&[MARK, 0]), Direction::Forward);
            let mut each = |key: &[u8], _: &[u8]| {
                if key >= &[MARK, MARKED_MAX + 1][..] {
                    return ControlFlow::Break(());
                }
                keys.push(key.to_vec());
                ControlFlow::Continue(())
            };
            while ordered.scan(&mut cursor, &mut each)? {}
            return Ok(keys);
        }
        let mut cursor = Cursor::default();
        while !cursor.is_done() {
            cursor = self.engine.walk(cursor, &mut |key, _, _| keys.extend(is_marked(key).then(|| key.to_vec())))?;
        }
        Ok(keys)
    }

    pub(crate) fn now_ms(self) -> u64 {
        self.engine.clock().now_ms()
    }
}
