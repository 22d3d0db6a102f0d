//! Tracked prefixes, their clients, and the changes that have not been announced yet.

use std::collections::BTreeMap;

/// Two prefixes of which one begins with the other; a client cannot have both.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Overlap {
    pub(crate) prefix: Vec<u8>,
    pub(crate) other: Vec<u8>,
    /// The client already had `other`.
    pub(crate) is_with_existing: bool,
}

/// Changed keys, each with the client that changed it last, if a client did.
pub(super) type Changed = BTreeMap<Vec<u8>, Option<u64>>;

#[derive(Default)]
pub(super) struct Prefixes {
    by_prefix: BTreeMap<Vec<u8>, Listeners>,
}

#[derive(Default)]
struct Listeners {
    client_ids: Vec<u64>,
    changed: Changed,
}

impl Prefixes {
    pub(super) fn len(&self) -> usize {
        self.by_prefix.len()
    }

    pub(super) fn of(&self, client_id: u64) -> Vec<Vec<u8>> {
        let own = self.by_prefix.iter().filter(|(_, listeners)| listeners.client_ids.contains(&client_id));
        own.map(|(prefix, _)| prefix.clone()).collect()
    }

    /// Adds prefixes of one client; without any, the empty one.
    pub(super) fn add(&mut self, client_id: u64, prefixes: &[&[u8]]) -> Result<(), Overlap> {
        self.check(client_id, prefixes)?;
        let all: &[&[u8]] = if prefixes.is_empty() { &[b""] } else { prefixes };
        for prefix in all {
            let listeners = self.by_prefix.entry(prefix.to_vec()).or_default();
            if !listeners.client_ids.contains(&client_id) {
                listeners.client_ids.push(client_id);
            }
        }
        Ok(())
    }

    fn check(&self, client_id: u64, prefixes: &[&[u8]]) -> Result<(), Overlap> {
        let overlap = |prefix: &[u8], other: &[u8], is_with_existing| {
            Err(Overlap { prefix: prefix.to_vec(), other: other.to_vec(), is_with_existing })
        };
        let existing = self.of(client_id);
        for (number, prefix) in prefixes.iter().enumerate() {
            if let Some(other) = existing.iter().find(|other| overlaps(prefix, other)) {
                return overlap(prefix, other, true);
            }
            if let Some(other) = prefixes[number + 1..].iter().find(|other| overlaps(prefix, other)) {
                return overlap(prefix, other, false);
            }
        }
        Ok(())
    }

    pub(super) fn remove(&mut self, client_id: u64) {
        self.by_prefix.retain(|_, listeners| {
            listeners.client_ids.retain(|id| *id != client_id);
            !listeners.client_ids.is_empty()
        });
    }

    /// Records a change of `key` for the clients with a prefix of it; returns false if there are none.
    pub(super) fn gather(&mut self, key: &[u8], by: Option<u64>) -> bool {
        let mut is_wanted = false;
        for (_, listeners) in self.by_prefix.iter_mut().filter(|(prefix, _)| key.starts_with(prefix)) {
            listeners.changed.insert(key.to_vec(), by);
            is_wanted = true;
        }
        is_wanted
    }

    /// Removes and returns the collected changes: for each prefix its clients and keys.
    pub(super) fn take_gathered(&mut self) -> Vec<(Vec<u64>, Changed)> {
        let with_changes = self.by_prefix.values_mut().filter(|listeners| !listeners.changed.is_empty());
        with_changes.map(|listeners| (listeners.client_ids.clone(), std::mem::take(&mut listeners.changed))).collect()
    }
}

fn overlaps(a: &[u8], b: &[u8]) -> bool {
    a.starts_with(b) || b.starts_with(a)
}
