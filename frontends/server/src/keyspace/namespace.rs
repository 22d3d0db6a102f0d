//! A database's range of the store's keys, and the encoding of their names (`databases` has the table).

use std::borrow::Cow;
use std::ops::Bound;

use catalog::{Space, TreeId};

pub(crate) const DATABASE_COUNT: usize = 16;

/// A byte that no UTF-8 text contains.
pub(super) const MARK: u8 = 0xFF;

/// A range of the store's keys that forms one database: a tree of the store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Namespace {
    id: TreeId,
    form: Form,
}

/// The form of the store's keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Form {
    /// That of a store without a catalog (`databases`).
    Table,
    /// That of a store with named trees (`docs/format/catalog.md`).
    Catalog,
}

/// A range of keys in the store.
pub(crate) type RawRange = (Bound<Vec<u8>>, Bound<Vec<u8>>);

impl Namespace {
    pub(super) fn new(id: TreeId, form: Form) -> Namespace {
        Namespace { id, form }
    }

    /// Returns the namespace of another tree.
    pub(super) fn other(self, id: TreeId) -> Namespace {
        Namespace { id, ..self }
    }

    pub(crate) fn is_first(self) -> bool {
        self.id == TreeId::NAMELESS
    }

    pub(super) fn id(self) -> TreeId {
        self.id
    }

    /// Returns the store's name of the namespace's `key`.
    #[inline]
    pub(crate) fn raw(self, key: &[u8]) -> Cow<'_, [u8]> {
        match self.form {
            _ if self.is_first() && !self.is_marked(key) => Cow::Borrowed(key),
            Form::Table => Cow::Owned([&[MARK, self.id.number() as u8], key].concat()),
            Form::Catalog => Cow::Owned(Space::of(self.id).with_stored(key, <[u8]>::to_vec)),
        }
    }

    /// Returns the namespace's name of the store's key `raw`; `None` if it belongs to another namespace or to none.
    #[inline]
    pub(crate) fn key_of(self, raw: &[u8]) -> Option<&[u8]> {
        match (self.form, raw) {
            (Form::Catalog, _) => Space::of(self.id).key_of(raw),
            (Form::Table, [MARK, id, key @ ..]) if self.is_marked(raw) => {
                (u32::from(*id) == self.id.number()).then_some(key)
            }
            (Form::Table, key) => self.is_first().then_some(key),
        }
    }

    /// Returns the namespace of a key of the store, if it is not the first one.
    #[inline]
    pub(super) fn beyond_first(raw: &[u8], form: Form) -> Option<Namespace> {
        match (raw, form) {
            ([MARK, ..], Form::Catalog) => TreeId::of_stored(raw),
            ([MARK, id, ..], Form::Table) if (1..DATABASE_COUNT as u8).contains(id) => Some(TreeId::new((*id).into())),
            _ => None,
        }
        .map(|id| Namespace { id, form })
        .filter(|namespace| !namespace.is_first())
    }

    /// Returns the ranges of the store's keys that form the namespace's keys from `low` to `high`, in order.
    pub(crate) fn ranges(self, low: Bound<&[u8]>, high: Bound<&[u8]>) -> Vec<RawRange> {
        if self.form == Form::Catalog {
            return Space::of(self.id).ranges(low, high);
        }
        let raw = |bound: Bound<&[u8]>| bound.map(|key| self.raw(key).into_owned());
        let bounds = (raw(low), raw(high));
        match self.id.number() as u8 {
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

    /// Returns whether a key of the store has a different name in namespace 0.
    fn is_marked(self, key: &[u8]) -> bool {
        match self.form {
            Form::Table => matches!(key, [MARK, namespace, ..] if *namespace <= DATABASE_COUNT as u8),
            Form::Catalog => catalog::is_marked(key),
        }
    }
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

    fn all(form: Form) -> impl Iterator<Item = Namespace> {
        (0..DATABASE_COUNT as u32).map(move |number| Namespace::new(TreeId::new(number), form))
    }

    #[test]
    fn client_keys_map_to_distinct_keys() {
        [Form::Table, Form::Catalog].into_iter().for_each(keys_are_separate);
    }

    fn keys_are_separate(form: Form) {
        let mut seen = std::collections::HashSet::new();
        for namespace in all(form) {
            for key in keys() {
                let raw = namespace.raw(&key).into_owned();
                assert_ne!(raw, TABLE_KEY);
                for other in all(form) {
                    assert_eq!(other.key_of(&raw), (other == namespace).then_some(&key[..]));
                }
                assert!(seen.insert(raw));
            }
        }
        assert!(all(form).all(|namespace| namespace.key_of(&TABLE_KEY).is_none()));
    }

    #[test]
    fn ranges_hold_the_namespaces_keys_in_order() {
        [Form::Table, Form::Catalog].into_iter().for_each(ranges_are_those_of_the_keys);
    }

    fn ranges_are_those_of_the_keys(form: Form) {
        for namespace in all(form) {
            let mut raws: Vec<Vec<u8>> = all(form)
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
                            raws.iter().filter(|raw| std::ops::RangeBounds::<Vec<u8>>::contains(range, *raw))
                        })
                        .map(|raw| namespace.key_of(raw).expect("a key of the namespace").to_vec())
                        .collect();
                    assert_eq!(found, wanted, "{namespace:?} {low:?} {high:?}");
                }
            }
        }
    }
}
