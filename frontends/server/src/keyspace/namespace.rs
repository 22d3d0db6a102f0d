//! A database's range of the store's keys, and the encoding of their names (`databases` has the table).

use std::borrow::Cow;
use std::ops::Bound;

pub(crate) const DATABASE_COUNT: usize = 16;

/// A byte that no UTF-8 text contains.
pub(super) const MARK: u8 = 0xFF;
/// The range of the store's keys that forms one database.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Namespace(pub(super) u8);

/// A range of keys in the store.
pub(crate) type RawRange = (Bound<Vec<u8>>, Bound<Vec<u8>>);

impl Namespace {
    /// The namespace that exists without a table.
    pub(crate) const FIRST: Namespace = Namespace(0);

    pub(crate) fn all() -> impl Iterator<Item = Namespace> {
        (0..DATABASE_COUNT as u8).map(Namespace)
    }

    /// Returns the store's name of the namespace's `key`.
    #[inline]
    pub(crate) fn raw(self, key: &[u8]) -> Cow<'_, [u8]> {
        if self.0 == 0 && !is_marked(key) { Cow::Borrowed(key) } else { Cow::Owned([&[MARK, self.0], key].concat()) }
    }

    /// Returns the namespace's name of the store's key `raw`; `None` if it belongs to another namespace or to none.
    #[inline]
    pub(crate) fn key_of(self, raw: &[u8]) -> Option<&[u8]> {
        match raw {
            [MARK, namespace, key @ ..] if is_marked(raw) => (*namespace == self.0).then_some(key),
            key => (self.0 == 0).then_some(key),
        }
    }

    /// Returns the namespace of a key of the store, if it is not the first one.
    #[inline]
    pub(super) fn beyond_first(raw: &[u8]) -> Option<Namespace> {
        match raw {
            [MARK, namespace, ..] if (1..DATABASE_COUNT as u8).contains(namespace) => Some(Namespace(*namespace)),
            _ => None,
        }
    }

    /// Returns the ranges of the store's keys that form the namespace's keys from `low` to `high`, in order.
    pub(crate) fn ranges(self, low: Bound<&[u8]>, high: Bound<&[u8]>) -> Vec<RawRange> {
        let raw = |bound: Bound<&[u8]>| bound.map(|key| self.raw(key).into_owned());
        let bounds = (raw(low), raw(high));
        match self.0 {
            0 => vec![
                (bounds.0.clone(), lesser(bounds.1.clone(), Bound::Excluded(vec![MARK, 1]))),
                (greater(bounds.0, Bound::Included(vec![MARK, DATABASE_COUNT as u8 + 1])), bounds.1),
            ],
            namespace => vec![(
                greater(bounds.0, Bound::Included(vec![MARK, namespace])),
                lesser(bounds.1, Bound::Excluded(vec![MARK, namespace + 1])),
            )],
        }
    }
}

/// Returns whether a key of the store has a different name in namespace 0.
fn is_marked(key: &[u8]) -> bool {
    matches!(key, [MARK, namespace, ..] if *namespace <= DATABASE_COUNT as u8)
}

/// Returns the tighter upper bound of the range's own bound and the namespace's.
fn lesser(own: Bound<Vec<u8>>, other: Bound<Vec<u8>>) -> Bound<Vec<u8>> {
    match (&own, &other) {
        (Bound::Included(a) | Bound::Excluded(a), Bound::Included(b) | Bound::Excluded(b)) if a < b => own,
        _ => other,
    }
}

fn greater(own: Bound<Vec<u8>>, other: Bound<Vec<u8>>) -> Bound<Vec<u8>> {
    match (&own, &other) {
        (Bound::Included(a) | Bound::Excluded(a), Bound::Included(b) | Bound::Excluded(b)) if a >= b => own,
        _ => other,
    }
}

#[cfg(test)]
mod tests {
    use super::super::databases::TABLE_KEY;
    use super::*;

    /// Returns keys that could be confused with others.
    fn keys() -> Vec<Vec<u8>> {
        let mut keys = vec![vec![], b"a".to_vec(), vec![0xFE], vec![0xFF], vec![0xFF, 0xFF]];
        for byte in 0..=18 {
            keys.push(vec![byte]);
            keys.push(vec![0xFF, byte]);
            keys.push(vec![0xFF, byte, 0xFF, byte]);
        }
        keys.sort();
        keys.dedup();
        keys
    }

    #[test]
    fn no_two_keys_share_one_of_the_store() {
        let mut seen = std::collections::HashSet::new();
        for namespace in Namespace::all() {
            for key in keys() {
                let raw = namespace.raw(&key).into_owned();
                assert_ne!(raw, TABLE_KEY);
                for other in Namespace::all() {
                    assert_eq!(other.key_of(&raw), (other == namespace).then_some(&key[..]));
                }
                assert!(seen.insert(raw));
            }
        }
        assert!(Namespace::all().all(|namespace| namespace.key_of(&TABLE_KEY).is_none()) || DATABASE_COUNT > 16);
    }

    #[test]
    fn ranges_hold_the_namespaces_keys_in_order() {
        for namespace in Namespace::all() {
            let mut raws: Vec<Vec<u8>> = Namespace::all()
                .flat_map(|namespace| keys().into_iter().map(move |key| namespace.raw(&key).into_owned()))
                .collect();
            raws.push(TABLE_KEY.to_vec());
            raws.sort();
            for low in [Bound::Unbounded, Bound::Included(&b"a"[..]), Bound::Excluded(&[0xFF, 3][..])] {
                for high in
                    [Bound::Unbounded, Bound::Included(&[0xFF, 4][..]), Bound::Excluded(&[0xFF, 0x11, 0xFF][..])]
                {
                    let within = |key: &[u8]| std::ops::RangeBounds::<[u8]>::contains(&(low, high), key);
                    let wanted: Vec<Vec<u8>> = keys().into_iter().filter(|key| within(key)).collect();
                    let found: Vec<Vec<u8>> = namespace
                        .ranges(low, high)
                        .iter()
                        .flat_map(|range| {
                            raws.iter().filter(|raw| std::ops::RangeBounds::<Vec<u8>>::contains(range, raw))
                        })
                        .map(|raw| namespace.key_of(raw).expect("a key of the namespace").to_vec())
                        .collect();
                    assert_eq!(found, wanted, "{namespace:?} {low:?} {high:?}");
                }
            }
        }
    }
}
