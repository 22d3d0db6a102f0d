//! The minimal store's records by their keys: an ordered index without a search through nodes.

/// The first bytes of keys, and the slots of their items, from the smallest key to the greatest.
pub(super) struct InOrder {
    starts: Box<[u64]>,
    slots: Box<[u64]>,
}

impl InOrder {
    /// Creates the index from pairs of a key's start and its slot.
    pub(super) fn of(mut items: Vec<(u64, u64)>) -> InOrder {
        items.sort_unstable();
        let (starts, slots): (Vec<u64>, Vec<u64>) = items.into_iter().unzip();
        InOrder { starts: starts.into(), slots: slots.into() }
    }

    /// Returns the slots from the first key on whose start is not below `start`.
    #[inline(always)]
    pub(super) fn from(&self, start: u64) -> &[u64] {
        &self.slots[self.place(start)..]
    }

    /// Interpolates the position, because keys are distributed evenly; corrects it once more from there, and then
    /// searches nearby.
    #[inline(always)]
    fn place(&self, start: u64) -> usize {
        let starts = &self.starts[..];
        let share = |part: u64| ((u128::from(part) * starts.len() as u128) >> u64::BITS) as usize;
        let mut place = share(start);
        for _ in 0..2 {
            let Some(&met) = starts.get(place) else { break };
            let away = share(start.abs_diff(met));
            place = if met < start { (place + away).min(starts.len()) } else { place.saturating_sub(away) };
        }
        while place < starts.len() && starts[place] < start {
            place += 1;
        }
        while place > 0 && starts[place - 1] >= start {
            place -= 1;
        }
        place
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn places_are_those_of_a_search(starts in prop::collection::vec(any::<u64>(), 0..200), sought: u64) {
            let in_order = InOrder::of(starts.iter().map(|&start| (start, start)).collect());
            for start in starts.iter().copied().chain([sought, 0, u64::MAX]) {
                let expected = in_order.starts.partition_point(|&found| found < start);
                prop_assert_eq!(in_order.from(start), &in_order.slots[expected..]);
            }
        }
    }
}
