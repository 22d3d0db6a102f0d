//! The keys that a transaction's client watches, with their states at `WATCH`.
//!
//! A command that changes a watched key marks the key's watchers (`observers::watch`). A write that bypasses the server
//! leaves no mark: one of a program that embeds the server and uses the store directly. So `WATCH` records the key's
//! version, and `EXEC` has three steps:
//!
//! 1. Check that the keys still have their recorded states; otherwise nothing is executed.
//! 2. Execute the commands. A command that reads a watched key in a different state breaks the transaction.
//! 3. Write the changes on condition that the keys have the versions of step 1. If a key has another version but the
//!    same state, compaction has moved it, and step 3 is repeated with the current versions.
//!
//! So everything that the commands have read of watched keys is still current when the changes are written, whatever
//! was written in between. Two values are equal if their versions are. Values that compaction may move are also equal
//! if bytes and expiry are equal, by a 64-bit hash under a key of this process. So a key that was set outside the
//! server to its previous value counts as unchanged.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;

use hikv::{Error, Expiry, ItemView, Limits, Store, Version, WriteBatch};

use super::{copy_of, expiry_of};

static HASHES: LazyLock<RandomState> = LazyLock::new(RandomState::new);

/// The state of a key.
#[derive(Clone, Copy)]
pub(crate) struct KeyState {
    version: Version,
    value: ValueIdentity,
    expiry: Expiry,
}

/// The identity of a value, in addition to its version.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ValueIdentity {
    Hash(u64),
    /// A value that is never moved: it is unchanged while its version is.
    InPlace,
}

impl ValueIdentity {
    fn of(value: &[u8]) -> ValueIdentity {
        if value.len() > Limits::MOVED_VALUE_BYTES_MAX {
            ValueIdentity::InPlace
        } else {
            ValueIdentity::Hash(HASHES.hash_one(value))
        }
    }
}

impl KeyState {
    /// Returns the key's current state; `None` if it does not exist.
    pub(crate) fn of(store: &Store, key: &[u8]) -> Result<Option<KeyState>, Error> {
        store.in_place().get_part_item(key, |item| KeyState {
            version: item.version(),
            value: ValueIdentity::of(item.value()),
            expiry: item.expiry(),
        })
    }

    fn is_value(&self, version: Version, value: &[u8]) -> bool {
        version == self.version
            || matches!(self.value, ValueIdentity::Hash(_)) && ValueIdentity::of(value) == self.value
    }

    fn is_moved_to(&self, now: &KeyState) -> bool {
        matches!(self.value, ValueIdentity::Hash(_)) && (self.value, self.expiry) == (now.value, now.expiry)
    }
}

fn version_of(store: &Store, key: &[u8]) -> Result<Option<Version>, Error> {
    store.in_place().get_part_item(key, |item| item.version())
}

/// Keys by their names in the store, with their states.
#[derive(Default)]
pub(crate) struct WatchedKeys {
    keys: BTreeMap<Vec<u8>, Option<KeyState>>,
    /// A command has read a different state.
    are_broken: Cell<bool>,
}

impl WatchedKeys {
    pub(crate) fn of(keys: impl Iterator<Item = (Vec<u8>, Option<KeyState>)>) -> WatchedKeys {
        WatchedKeys { keys: keys.collect(), ..WatchedKeys::default() }
    }

    /// Step 1: returns whether each key still has its state, and updates the versions.
    pub(crate) fn hold(&mut self, store: &Store) -> Result<bool, Error> {
        for (key, state) in &mut self.keys {
            if version_of(store, key)? == state.map(|state| state.version) {
                continue;
            }
            match (&*state, KeyState::of(store, key)?) {
                (Some(before), Some(now)) if before.is_moved_to(&now) => *state = Some(now),
                _ => return Ok(false),
            }
        }
        Ok(self.are_unchanged())
    }

    /// Returns whether all reads of watched keys saw the recorded states.
    pub(super) fn are_unchanged(&self) -> bool {
        !self.are_broken.get()
    }

    /// Step 2: calls `read` with a value, of which it needs only a part if `is_part`.
    pub(super) fn read<R>(
        &self,
        store: &Store,
        key: &[u8],
        is_part: bool,
        read: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>, Error> {
        let Some(state) = self.keys.get(key) else {
            return if is_part { store.in_place().get_part(key, read) } else { store.in_place().get(key, read) };
        };
        let show = |item: ItemView<'_>| {
            self.rest_on(state.is_some_and(|state| state.is_value(item.version(), item.value())));
            read(item.value())
        };
        let shown =
            if is_part { store.in_place().get_part_item(key, show)? } else { store.in_place().get_item(key, show)? };
        self.rest_on(shown.is_some() == state.is_some());
        Ok(shown)
    }

    /// Step 2, for the key's expiry.
    pub(super) fn expires_at(&self, store: &Store, key: &[u8]) -> Result<Option<Expiry>, Error> {
        let expiry = expiry_of(store, key)?;
        if let Some(state) = self.keys.get(key) {
            self.rest_on(expiry == state.map(|state| state.expiry));
        }
        Ok(expiry)
    }

    /// Step 2, for a copy of the key's value and expiry.
    pub(super) fn copy(&self, store: &Store, key: &[u8]) -> Result<Option<(Vec<u8>, Expiry)>, Error> {
        let Some(state) = self.keys.get(key) else { return copy_of(store, key) };
        let copied = store.get_item(key)?;
        let is_same = match (state, &copied) {
            (Some(state), Some(now)) => state.is_value(now.version, &now.value) && state.expiry == now.expiry,
            (state, now) => state.is_none() && now.is_none(),
        };
        self.rest_on(is_same);
        Ok(copied.map(|copied| (copied.value.into_vec(), copied.expiry)))
    }

    /// Step 3: adds the conditions to the batch.
    pub(super) fn add_conditions(&self, batch: &mut WriteBatch) {
        for (key, state) in &self.keys {
            match state {
                Some(state) => batch.expect_version(key, state.version),
                None => batch.expect_absent(key),
            };
        }
    }

    fn rest_on(&self, is_as_seen: bool) {
        self.are_broken.set(self.are_broken.get() || !is_as_seen);
    }
}

#[cfg(test)]
mod tests {
    use hikv::{Durability, Options};
    use tempfile::TempDir;

    use super::super::{Items, Pending};
    use super::*;
    use crate::keyspace::databases::Databases;

    fn store() -> (Store, TempDir) {
        let dir = tempfile::tempdir().unwrap();
        let options = Options::new().durability(Durability::Buffered).background(false);
        (options.open(dir.path()).unwrap(), dir)
    }

    /// Returns whether a transaction that watches `k` and `absent` is written, given its reads and the writes of others
    /// during it.
    fn is_written(store: &Store, during: impl FnOnce(Items<'_>)) -> bool {
        store.clear().unwrap();
        store.put("k", "v").unwrap();
        let state = |key: &str| (key.as_bytes().to_vec(), KeyState::of(store, key.as_bytes()).unwrap());
        let mut watched_keys = WatchedKeys::of(["k", "absent"].map(state).into_iter());
        assert!(watched_keys.hold(store).unwrap());
        let pending = Pending::depending_on(watched_keys);
        let databases = Databases::load(store).unwrap();
        let items = Items::new(store, &databases, Some(&pending));
        during(items);
        assert!(items.put("mine", "1").is_ok());
        let is_written = pending.commit(store, &databases.ids()).is_ok_and(|is_written| is_written);
        assert_eq!(store.contains("mine").unwrap(), is_written);
        is_written
    }

    /// The version differs, as after compaction.
    #[test]
    fn moved_item_is_written_at_second_attempt() {
        let (store, _dir) = store();
        assert!(is_written(&store, |_| store.put("k", "v").unwrap()));
        assert!(!is_written(&store, |_| store.put("k", "w").unwrap()));
        assert!(!is_written(&store, |_| store.put("absent", "").unwrap()));
    }

    /// A value whose hash collides with the watched one's replaces it.
    #[test]
    fn forged_value_breaks_transaction() {
        const RETURN_COUNT: usize = 8;
        const WRITE_COUNT_MAX: usize = 100_000;
        const WRITES_PER_PLACE: usize = 5_000;
        let ((store, _dir), watched) = (store(), [7; 100]);
        let mut random = fastrand::Rng::with_seed(7);
        let watch = || {
            store.put("k", watched).unwrap();
            KeyState::of(&store, b"k").unwrap()
        };
        let (forged, mut state, mut return_count) = (testkit::forged(&watched), watch(), 0);
        for number in 0..WRITE_COUNT_MAX {
            // The allocator may never come back to a place.
            if number % WRITES_PER_PLACE == 0 {
                state = watch();
            }
            let is_watched = random.bool();
            store.put("k", if is_watched { &watched[..] } else { &forged }).unwrap();
            assert_eq!(WatchedKeys::of([(b"k".to_vec(), state)].into_iter()).hold(&store).unwrap(), is_watched);
            return_count += usize::from(version_of(&store, b"k").unwrap() == state.map(|state| state.version));
            if return_count == RETURN_COUNT {
                return;
            }
        }
        panic!("the place was used again {return_count} times alone");
    }

    /// A command reads while the key holds another value, which is reverted before the end.
    #[test]
    fn watched_value_that_returned_still_conflicts() {
        type Passing = (fn(&Store), fn(&Store));
        type Read = fn(Items<'_>);
        let another: Passing = (|store| store.put("k", "w").unwrap(), |store| store.put("k", "v").unwrap());
        let gone: Passing = (|store| assert!(store.delete("k").unwrap()), |store| store.put("k", "v").unwrap());
        let there: Passing =
            (|store| store.put("absent", "").unwrap(), |store| assert!(store.delete("absent").unwrap()));
        let (store, _dir) = store();
        let reads: [(&str, Read, [bool; 3]); 7] = [
            ("nothing", |_| (), [false; 3]),
            ("value", |items| assert!(items.get("k").is_ok()), [true, true, false]),
            ("part", |items| assert!(items.get_part_with("k", <[u8]>::len).is_ok()), [true, true, false]),
            ("expiry", |items| assert!(items.expires_at("k").is_ok()), [false, true, false]),
            ("item", |items| assert!(items.held(b"k").is_ok()), [true, true, false]),
            ("absence", |items| assert!(items.contains("absent").is_ok()), [false, false, true]),
            ("deletion", |items| assert!(items.delete("absent").is_ok()), [false, false, true]),
        ];
        for (what, read, has_visible_effects) in reads {
            for ((write, put_back), has_visible_effects) in [another, gone, there].into_iter().zip(has_visible_effects)
            {
                let is_written = is_written(&store, |items| {
                    write(&store);
                    read(items);
                    put_back(&store);
                });
                assert_eq!(is_written, !has_visible_effects, "{what}");
            }
        }
    }
}
