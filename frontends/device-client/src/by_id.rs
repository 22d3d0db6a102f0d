//! A map from command identifiers to the state of pending commands.
//!
//! An identifier's low bits are its slot in a table, which is doubled when two would share a slot. So nothing is
//! hashed, and the completion of a finished command, whose slot is reused, is distinguished by the identifier's other
//! bits.

const PLACE_COUNT_MIN: usize = 16;

/// Values by identifier.
#[derive(Debug)]
pub(crate) struct ById<T> {
    /// A power of two, or empty.
    places: Vec<Option<(u16, T)>>,
    count: usize,
}

impl<T> Default for ById<T> {
    fn default() -> ById<T> {
        ById { places: Vec::new(), count: 0 }
    }
}

impl<T> ById<T> {
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// Returns an identifier after `id` with a free slot. It is found quickly, because half of the slots are free, or
    /// become free by doubling.
    pub(crate) fn next_free(&self, id: u16) -> u16 {
        let mut behind = (0..=u16::MAX).map(|step| id.wrapping_add(1).wrapping_add(step));
        behind.find(|id| !matches!(self.place(*id), Some(Some(_)))).unwrap_or(id)
    }

    /// Adds a value; a previous one with this identifier is dropped.
    pub(crate) fn insert(&mut self, id: u16, value: T) {
        self.remove(id);
        while self.places.len() < 2 * (self.count + 1) || matches!(self.place(id), Some(Some(_))) {
            self.double();
        }
        let at = self.at(id);
        self.places[at] = Some((id, value));
        self.count += 1;
    }

    pub(crate) fn get_mut(&mut self, id: u16) -> Option<&mut T> {
        let at = self.at(id);
        self.places.get_mut(at)?.as_mut().filter(|(own, _)| *own == id).map(|(_, value)| value)
    }

    pub(crate) fn remove(&mut self, id: u16) -> Option<T> {
        self.get_mut(id)?;
        let at = self.at(id);
        self.count -= 1;
        self.places[at].take().map(|(_, value)| value)
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &T> {
        self.places.iter().flatten().map(|(_, value)| value)
    }

    fn at(&self, id: u16) -> usize {
        usize::from(id) & self.places.len().wrapping_sub(1)
    }

    fn place(&self, id: u16) -> Option<&Option<(u16, T)>> {
        self.places.get(self.at(id))
    }

    /// Values in different slots are also in different slots of the longer table.
    fn double(&mut self) {
        let place_count = (2 * self.places.len()).max(PLACE_COUNT_MIN);
        let held = std::mem::take(&mut self.places);
        self.places.resize_with(place_count, || None);
        for (id, value) in held.into_iter().flatten() {
            let at = self.at(id);
            self.places[at] = Some((id, value));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn values_are_found_by_identifier() {
        let (mut by_id, mut model, mut id, mut random) = (ById::default(), HashMap::new(), 65_000u16, 1u64);
        for number in 0..200_000u32 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let chance = random >> 33;
            if chance.is_multiple_of(2) && model.len() < 300 {
                id = by_id.next_free(id);
                assert!(!model.contains_key(&id));
                by_id.insert(id, number);
                model.insert(id, number);
            } else {
                let id = (chance >> 1) as u16;
                let near = model.keys().find(|own| *own & 0xff == id & 0xff).copied().unwrap_or(id);
                for id in [id, near, near.wrapping_add(1 << 10)] {
                    assert_eq!(by_id.get_mut(id).copied(), model.get(&id).copied());
                    assert_eq!(by_id.remove(id), model.remove(&id));
                }
            }
            assert_eq!(by_id.len(), model.len());
        }
        let mut left: Vec<u32> = by_id.values().copied().collect();
        let mut expected: Vec<u32> = model.into_values().collect();
        left.sort_unstable();
        expected.sort_unstable();
        assert_eq!(left, expected);
    }

    /// Identifiers assigned elsewhere may collide except in the longest table.
    #[test]
    fn any_identifiers_have_places() {
        let mut by_id = ById::default();
        [0, 0x8000, 0x4000, 0xc000].into_iter().for_each(|id| by_id.insert(id, id));
        by_id.insert(0, 7);
        assert_eq!(by_id.len(), 4);
        assert_eq!(
            [0, 0x8000, 0x4000, 0xc000].map(|id| by_id.remove(id)),
            [Some(7), Some(0x8000), Some(0x4000), Some(0xc000)]
        );
    }
}
