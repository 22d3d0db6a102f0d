//! What a transaction rests on: keys that its client watched, and what these held then.
//!
//! A command that touches a watched key marks the key's watchers (`observers::watch`). A write past the server leaves no mark: that of a program
//! which embeds the server, and uses the store as well. So the version of a key is noted by `WATCH`, and `EXEC` has three steps:
//!
//! 1. The keys still hold what they held, or nothing is executed.
//! 2. The commands are executed. One that reads a watched key, and finds something else, breaks the premises.
//! 3. The changes are written under the condition that the keys have the versions of 1. A key of another version that holds what
//!    it held was moved by compaction: step 3 is taken again, with the versions of now.
//!
//! So all that the commands have read of watched keys is what the keys hold when the changes are written, whatever is written meanwhile. Two
//! values are the same if their versions are. Values that compaction may move are the same, too, if bytes and expiry are equal, by a hash
//! of 64 bits under a key of this process. So a key counts as untouched that was set past the server to the value which it had.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;

use hikv::{Error, Expiry, Limits, Store, Version, WriteBatch};

use super::copy_of;

static HASHES: LazyLock<RandomState> = LazyLock::new(RandomState::new);

/// What a key held.
#[derive(Clone, Copy)]
pub(crate) struct Seen {
    version: Version,
    value: Shown,
    expiry: Expiry,
}

/// What a value is recognised by, beside its version.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shown {
    Hash(u64),
    /// A value that is not moved: it is the same while its version is.
    InPlace,
}

impl Shown {
    fn of(value: &[u8]) -> Shown {
        if value.len() > Limits::MOVED_VALUE_BYTES_MAX { Shown::InPlace } else { Shown::Hash(HASHES.hash_one(value)) }
    }
}

impl Seen {
    /// What the key holds now; `None` if it is not there.
    pub(crate) fn of(store: &Store, key: &[u8]) -> Result<Option<Seen>, Error> {
        let look = || store.get_part_versioned_with(key, |version, value| (version, Shown::of(value)));
        Ok(as_of_one_moment(store, key, look)?.map(|(version, value, expiry)| Seen { version, value, expiry }))
    }

    fn is_value(&self, version: Version, value: &[u8]) -> bool {
        version == self.version || matches!(self.value, Shown::Hash(_)) && Shown::of(value) == self.value
    }

    fn is_moved_to(&self, now: &Seen) -> bool {
        matches!(self.value, Shown::Hash(_)) && (self.value, self.expiry) == (now.value, now.expiry)
    }
}

/// What `look` tells of a value, with the version and the expiry. The latter is read by itself: again, where the key was written meanwhile.
fn as_of_one_moment<R>(
    store: &Store,
    key: &[u8],
    mut look: impl FnMut() -> Result<Option<(Version, R)>, Error>,
) -> Result<Option<(Version, R, Expiry)>, Error> {
    loop {
        let Some((version, shown)) = look()? else { return Ok(None) };
        let Some(expiry) = store.expires_at(key)? else { return Ok(None) };
        if version_of(store, key)? == Some(version) {
            return Ok(Some((version, shown, expiry)));
        }
    }
}

fn version_of(store: &Store, key: &[u8]) -> Result<Option<Version>, Error> {
    store.get_part_versioned_with(key, |version, _| version)
}

/// Keys, by their names in the store, and what they held.
#[derive(Default)]
pub(crate) struct Premises {
    keys: BTreeMap<Vec<u8>, Option<Seen>>,
    /// A command has read something else.
    are_broken: Cell<bool>,
}

impl Premises {
    pub(crate) fn of(keys: impl Iterator<Item = (Vec<u8>, Option<Seen>)>) -> Premises {
        Premises { keys: keys.collect(), ..Premises::default() }
    }

    /// Step 1: whether each key holds what it held. Their versions are those of now afterwards.
    pub(crate) fn hold(&mut self, store: &Store) -> Result<bool, Error> {
        for (key, seen) in &mut self.keys {
            if version_of(store, key)? == seen.map(|seen| seen.version) {
                continue;
            }
            match (&*seen, Seen::of(store, key)?) {
                (Some(before), Some(now)) if before.is_moved_to(&now) => *seen = Some(now),
                _ => return Ok(false),
            }
        }
        Ok(self.are_met())
    }

    /// Whether all that was read of watched keys is what they held.
    pub(super) fn are_met(&self) -> bool {
        !self.are_broken.get()
    }

    /// Step 2: shows a value, of a part of which `read` wants to know if `is_part`.
    pub(super) fn read<R>(
        &self,
        store: &Store,
        key: &[u8],
        is_part: bool,
        read: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>, Error> {
        let Some(seen) = self.keys.get(key) else {
            return if is_part { store.get_part_with(key, read) } else { store.get_with(key, read) };
        };
        let show = |version: Version, value: &[u8]| {
            self.rest_on(seen.is_some_and(|seen| seen.is_value(version, value)));
            read(value)
        };
        let shown =
            if is_part { store.get_part_versioned_with(key, show)? } else { store.get_versioned_with(key, show)? };
        self.rest_on(shown.is_some() == seen.is_some());
        Ok(shown)
    }

    /// Step 2, of when a key expires.
    pub(super) fn expires_at(&self, store: &Store, key: &[u8]) -> Result<Option<Expiry>, Error> {
        let expiry = store.expires_at(key)?;
        if let Some(seen) = self.keys.get(key) {
            self.rest_on(expiry == seen.map(|seen| seen.expiry));
        }
        Ok(expiry)
    }

    /// Step 2, of a copy of all that a key holds.
    pub(super) fn copy(&self, store: &Store, key: &[u8]) -> Result<Option<(Vec<u8>, Expiry)>, Error> {
        let Some(seen) = self.keys.get(key) else { return copy_of(store, key) };
        let look = || store.get_versioned_with(key, |version, value| (version, value.to_vec()));
        let copied = as_of_one_moment(store, key, look)?;
        let is_same = copied.as_ref().map(|(version, value, expiry)| {
            seen.is_some_and(|seen| seen.is_value(*version, value) && seen.expiry == *expiry)
        });
        self.rest_on(is_same.unwrap_or(seen.is_none()));
        Ok(copied.map(|(_, value, expiry)| (value, expiry)))
    }

    /// Step 3: what the batch has to find.
    pub(super) fn ask_in(&self, batch: &mut WriteBatch) {
        for (key, seen) in &self.keys {
            match seen {
                Some(seen) => batch.expect_version(key, seen.version),
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

    /// Whether a transaction that has watched `k` and `absent` is written, given what it reads and others write meanwhile.
    fn is_written(store: &Store, during: impl FnOnce(Items<'_>)) -> bool {
        store.clear().unwrap();
        store.put("k", "v").unwrap();
        let seen = |key: &str| (key.as_bytes().to_vec(), Seen::of(store, key.as_bytes()).unwrap());
        let mut premises = Premises::of(["k", "absent"].map(seen).into_iter());
        assert!(premises.hold(store).unwrap());
        let pending = Pending::resting_on(premises);
        let databases = Databases::load(store).unwrap();
        let items = Items::new(store, &databases, Some(&pending));
        during(items);
        assert!(items.put("mine", "1").is_ok());
        let is_written = pending.commit(store).is_ok_and(|told| told.is_some());
        assert_eq!(store.contains("mine").unwrap(), is_written);
        is_written
    }

    /// The version is another, as after compaction.
    #[test]
    fn moved_item_is_written_at_second_attempt() {
        let (store, _dir) = store();
        assert!(is_written(&store, |_| store.put("k", "v").unwrap()));
        assert!(!is_written(&store, |_| store.put("k", "w").unwrap()));
        assert!(!is_written(&store, |_| store.put("absent", "").unwrap()));
    }

    /// A value whose checksum collides with the watched one's comes to the watched one's place.
    #[test]
    fn forged_value_breaks_premises() {
        const RETURN_COUNT: usize = 8;
        const WRITE_COUNT_MAX: usize = 100_000;
        let ((store, _dir), watched) = (store(), [7; 100]);
        let mut random = fastrand::Rng::with_seed(7);
        store.put("k", watched).unwrap();
        let seen = Seen::of(&store, b"k").unwrap();
        let (forged, mut return_count) = (testkit::forged(&watched), 0);
        for _ in 0..WRITE_COUNT_MAX {
            let is_watched = random.bool();
            store.put("k", if is_watched { &watched[..] } else { &forged }).unwrap();
            assert_eq!(Premises::of([(b"k".to_vec(), seen)].into_iter()).hold(&store).unwrap(), is_watched);
            return_count += usize::from(version_of(&store, b"k").unwrap() == seen.map(|seen| seen.version));
            if return_count == RETURN_COUNT {
                return;
            }
        }
        panic!("the place was used again {return_count} times alone");
    }

    /// A command's read, while the key holds something else, which is put back before the end.
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
        for (what, read, is_noticed) in reads {
            for ((write, put_back), is_noticed) in [another, gone, there].into_iter().zip(is_noticed) {
                let is_written = is_written(&store, |items| {
                    write(&store);
                    read(items);
                    put_back(&store);
                });
                assert_eq!(is_written, !is_noticed, "{what}");
            }
        }
    }
}
