//! Finding many keys at once: the group goes down together (`apply`), so that cache misses overlap, and items are asked for before
//! the first key is compared.

use pmem::Dram;

use super::apply::{GROUP_COUNT, Traveller};
use super::inner::Seek;
use super::search::{Stop, Target};
use super::{BPlusTree, ChangeError, Keys};
use crate::Position;

impl<D: Dram> BPlusTree<D> {
    /// Finds the items of `wanted`, in order: `found` is told of each, by its number. Before that `near` is shown the items that are likely
    /// theirs, which may be none that are there, to ask the cache for what will be read of them. Any number of keys; from 16 on they are
    /// quickest.
    pub fn find_many<K: Keys>(
        &self,
        keys: &K,
        wanted: &[&[u8]],
        near: impl Fn(Position),
        mut found: impl FnMut(usize, Result<Option<Position>, K::Error>),
    ) {
        let _pin = epoch::pin();
        for (group, wanted) in wanted.chunks(GROUP_COUNT).enumerate() {
            let mut travellers = self.approach(keys, wanted, &near);
            for (number, (traveller, key)) in travellers.iter_mut().flatten().zip(wanted).enumerate() {
                let result = match traveller.find() {
                    Ok(position) => Ok(position),
                    Err(Stop::Failed(ChangeError::Keys(error))) => Err(error),
                    Err(_) => self.find(keys, key),
                };
                found(group * GROUP_COUNT + number, result);
            }
        }
    }

    /// Asks the cache for what finding or changing these keys reads of the tree, and shows `near` the items that are likely theirs.
    pub fn prefetch_many<K: Keys>(&self, keys: &K, wanted: &[&[u8]], near: impl Fn(Position)) {
        let _pin = epoch::pin();
        wanted.chunks(GROUP_COUNT).for_each(|wanted| _ = self.approach(keys, wanted, &near));
    }

    /// Goes down to the leaves of a group, and looks there for what will be read next.
    #[inline(always)]
    fn approach<'t, 'k, K: Keys>(
        &'t self,
        keys: &'k K,
        wanted: &[&'k [u8]],
        near: &impl Fn(Position),
    ) -> [Option<Traveller<'t, 'k, K>>; GROUP_COUNT] {
        let mut travellers = self.descend_together(|number| Some(Target::whole(keys, wanted.get(number)?)));
        for traveller in travellers.iter_mut().flatten() {
            // One that lost its way goes on its own.
            traveller.likely().into_iter().for_each(near);
        }
        travellers
    }
}

impl<K: Keys> Traveller<'_, '_, K> {
    #[inline(always)]
    fn likely(&mut self) -> Option<Position> {
        let (Seek::At(target), Some(at)) = (&mut self.seek, self.leaf) else { return None };
        at.node.likely(target).ok().flatten()
    }

    /// The item in the leaf that it came to, if that is still what it was.
    #[inline(always)]
    fn find(&mut self) -> Result<Option<Position>, Stop<K::Error>> {
        let (Seek::At(target), Some(at)) = (&mut self.seek, self.leaf) else { return Err(Stop::Again) };
        let spot = at.node.find(target, || at.check())?;
        let found = spot.is_there.then(|| at.node.position(spot.index));
        at.check()?;
        Ok(found)
    }
}
