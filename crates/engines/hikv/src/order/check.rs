//! Checks the ordered index: first the tree alone, then every position in the tree against the hash index.
//!
//! If the counts are equal, keys ascend, and the hash index finds the same item for each key, both have the same keys.

use std::ops::Bound;

use index::Position;
use index::bplus_tree::{BPlusTree, TreeDamage};
use pmem::Medium;

use super::items::Items;
use super::paged::{Paged, way};
use super::scan::Scans;
use crate::memory::Memory;
use engine::{Damage, Direction, Error, ScanCursor};

impl<M: Medium, D: Memory> Scans<'_, M, D> {
    /// Checks the tree while its lock excludes drainers; returns the number of compared keys.
    pub(crate) fn check(&self, damaged: &mut dyn FnMut(Damage)) -> Result<u64, Error> {
        self.catch_up()?;
        let slot = self.order.tree.lock();
        let Some(tree) = &*slot else { return Err(self.order.not_ordered_yet()) };
        let mut is_sound = true;
        tree.check(&Items(self.reader.medium()), &mut |damage| {
            is_sound = false;
            damaged(described(damage));
        });
        let (ordered, hashed) = (tree.len(), self.reader.index().len());
        if ordered != hashed {
            let what = format!("the ordered index has {ordered} keys, the hash index has {hashed}");
            damaged(Damage { offset: 0, what });
        }
        // An inconsistent tree cannot be walked.
        if is_sound { self.compare(tree, damaged) } else { Ok(0) }
    }

    /// Looks up each key of the tree in the hash index.
    fn compare(&self, tree: &BPlusTree<D>, damaged: &mut dyn FnMut(Damage)) -> Result<u64, Error> {
        let mut cursor = ScanCursor::new(Bound::Unbounded, Direction::Forward);
        let mut count = 0;
        loop {
            let _pin = epoch::pin();
            let (from, direction, page) = cursor.parts();
            tree.read_page(&Items(self.reader.medium()), from, way(direction), page)?;
            for &position in cursor.page().positions() {
                count += 1;
                if !self.is_hashed_at(position)? {
                    let what = "the ordered index has an item that the hash index does not have for its key".into();
                    damaged(Damage { offset: position.offset().0, what });
                }
            }
            if !cursor.follow_page() {
                return Ok(count);
            }
        }
    }

    /// Returns true if the hash index finds this item by its key. It does so for an expired item as well: both indexes
    /// have the item until it is reaped. The caller is pinned.
    fn is_hashed_at(&self, position: Position) -> Result<bool, Error> {
        let key = self.scanned(position)?.key;
        let found = self.reader.find(self.reader.signature(key), key)?;
        Ok(found.is_some_and(|(found, _)| found.item() == position.item()))
    }
}

fn described(damage: TreeDamage) -> Damage {
    let offset = damage.position.map_or(0, |position| position.offset().0);
    Damage { offset, what: format!("in the ordered index: {}", damage.what) }
}

#[cfg(test)]
mod tests {
    use index::bplus_tree::{Change, Edit, KeyStart};
    use pmem_sim::{Model, Sim};

    use super::*;
    use std::time::Duration;

    use crate::{HiKv, Ordered, Parameters};
    use engine::prelude::*;
    use engine::{Clock, Early, OrderState};
    use pmem_os::HostDram;

    const REGION_BYTES: u64 = 16 << 20;
    const KEY_COUNT: u32 = 1_000;
    type Store = HiKv<Sim, HostDram>;

    fn filled() -> Store {
        let parameters = Parameters { uuid: [7; 16], hash_seed: 7, partition_count: 4, region_bytes: REGION_BYTES };
        let medium = Sim::new(REGION_BYTES, Model::Line);
        let store = HiKv::format(medium, HostDram, &parameters).unwrap().keeping_order(Ordered::new(1, HostDram));
        (0..KEY_COUNT).for_each(|number| store.put(&number.to_be_bytes(), b"value").unwrap());
        store.catch_up(Early::Wait).unwrap();
        store
    }

    fn position(store: &Store, number: u32) -> Position {
        let mut found = None;
        store
            .get(&number.to_be_bytes(), &mut |version, _, _| found = Some(Position::from_word(version.words()[0])))
            .unwrap();
        found.expect("the key is there")
    }

    /// Changes the tree without the engine.
    fn change_tree(store: &Store, number: u32, edit: Edit) {
        let key = number.to_be_bytes();
        let slot = store.writer().order().tree.read();
        let tree = slot.as_ref().expect("the order is ready");
        let change = Change { key: KeyStart::whole(&key), edit };
        tree.apply(&Items(store.medium()), &[change], |_, applied| applied.unwrap());
    }

    fn damage(store: &Store) -> Vec<String> {
        let mut found = Vec::new();
        store.check_order(&mut |damage| found.push(damage.what)).unwrap();
        found
    }

    #[test]
    fn sound_order_has_every_key() {
        let store = filled();
        (0..KEY_COUNT).step_by(3).for_each(|number| assert!(store.delete(&number.to_be_bytes()).unwrap()));
        let count = store.check_order(&mut |damage| panic!("{damage:?}")).unwrap();
        assert_eq!(count, store.len().unwrap());
    }

    #[test]
    fn unreaped_expired_item_is_no_damage() {
        let clock = Clock::manual(0);
        let store = filled().by_clock(clock.clone());
        store.put_until(b"expires", b"value", clock.after(Duration::from_secs(1))).unwrap();
        clock.advance(Duration::from_secs(1));
        assert!(!store.get(b"expires", &mut |_, _, _| ()).unwrap());
        let count = store.check_order(&mut |damage| panic!("{damage:?}")).unwrap();
        assert_eq!(count, u64::from(KEY_COUNT) + 1);
    }

    #[test]
    fn key_that_tree_lacks_is_missed() {
        let store = filled();
        change_tree(&store, 500, Edit::Remove(position(&store, 500)));
        assert_eq!(damage(&store), ["the ordered index has 999 keys, the hash index has 1000"]);
    }

    #[test]
    fn item_missing_from_hash_index_is_found() {
        let store = filled();
        let old = position(&store, 500);
        let _pin = epoch::pin();
        assert!(store.delete(&500u32.to_be_bytes()).unwrap());
        store.catch_up(Early::Wait).unwrap();
        change_tree(&store, 500, Edit::Insert(old));
        let found = damage(&store);
        assert!(
            found.iter().any(|what| what.contains("999"))
                && found.iter().any(|what| what.contains("does not have for its key"))
        );
    }

    #[test]
    fn tree_out_of_order_is_found() {
        let store = filled();
        change_tree(&store, 500, Edit::Replace { old: position(&store, 500), new: position(&store, 7) });
        assert!(damage(&store).iter().any(|what| what.starts_with("in the ordered index")));
    }

    /// The tree does not take a change and is dropped: the item that the change replaced is freed nevertheless.
    #[test]
    fn failed_tree_changes_are_freed() {
        let store = filled();
        let taken_bytes = || {
            while store.stats().garbage_count > 0 {
                store.run_idle_maintenance();
            }
            store.stats().live_bytes
        };
        let before = taken_bytes();
        change_tree(&store, 500, Edit::Remove(position(&store, 500)));
        store.put(&500u32.to_be_bytes(), b"other").unwrap();
        while store.apply().is_ok_and(|count| count > 0) {}
        assert_ne!(store.stats().order.unwrap().state, OrderState::Ready, "the tree took it");
        assert_eq!(taken_bytes(), before);
    }
}
