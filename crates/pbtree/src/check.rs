//! Checks the tree's consistency.

use heap::Place;
use pmem::{Dram, Medium};

use crate::Error;
use crate::descent::Reached;
use crate::key;
use crate::retire::Retire;
use crate::tree::Tree;
use crate::walk::Fences;

/// A contradiction in the tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Damage {
    /// The offset of the damage.
    pub offset: u64,
    /// A description of the damage.
    pub what: &'static str,
}

/// The result of a check: counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Figures {
    /// The number of levels.
    pub level_count: u64,
    /// The number of nodes.
    pub node_count: u64,
    /// The number of keys that have a value.
    pub key_count: u64,
    /// The number of deleted keys whose pairs still exist.
    pub dead_count: u64,
    /// The bytes occupied by nodes, keys, values, logs and the node that is kept for merges.
    pub used_bytes: u64,
}

type OnDamage<'a> = &'a mut dyn FnMut(Damage);

impl<M: Medium, D: Dram, R: Retire<M, D>> Tree<M, D, R> {
    /// Reads the whole tree and reports its damage: keys out of order or outside their separators, chunks whose
    /// checksum does not fit, words that refer to no valid place or to a free one. Other threads may read and write
    /// at the same time.
    ///
    /// # Errors
    /// [`Error::Heap`] if the medium fails.
    pub fn check(&self, on_damage: OnDamage<'_>) -> Result<Figures, Error> {
        self.check_while(on_damage, &mut || true)
    }

    /// Checks as [`Tree::check`] does while `goes_on` returns true; it is called after every node.
    ///
    /// # Errors
    /// As for [`Tree::check`]; [`Error::Stopped`] once `goes_on` returns false.
    pub fn check_while(&self, on_damage: OnDamage<'_>, goes_on: &mut dyn FnMut() -> bool) -> Result<Figures, Error> {
        let mut figures = Figures { used_bytes: self.spare_bytes(), ..Figures::default() };
        (0..self.lanes.count())
            .for_each(|lane| figures.used_bytes += self.heap.table().place_bytes(self.lanes.log(lane)));
        loop {
            let walked = self.each_node(figures.level_count as u8, |fences, node| {
                self.check_node(fences, node, &mut figures, on_damage);
                if goes_on() { Ok(()) } else { Err(Error::Stopped) }
            });
            match report(walked, on_damage)? {
                Some(true) => figures.level_count += 1,
                _ => return Ok(figures),
            }
        }
    }

    /// Counts nodes and pairs without reading keys and values; [`Figures::used_bytes`] stays 0.
    ///
    /// # Errors
    /// [`Error::Damaged`]; [`Error::Heap`] if the medium fails.
    pub fn figures(&self) -> Result<Figures, Error> {
        let mut figures = Figures::default();
        while self.each_node(figures.level_count as u8, |_, node| {
            figures.node_count += 1;
            if node.meta.level == 0 {
                let dead_count = node.node.dead_count(node.meta.count);
                figures.dead_count += dead_count as u64;
                figures.key_count += (node.meta.count - dead_count) as u64;
            }
            Ok(())
        })? {
            figures.level_count += 1;
        }
        Ok(figures)
    }

    fn check_node(&self, fences: Fences<'_>, node: &Reached<'_, M>, figures: &mut Figures, on_damage: OnDamage<'_>) {
        figures.node_count += 1;
        let mut used_bytes = 0;
        let placed = self.each_place(node, &mut |place| {
            used_bytes += self.heap.table().place_bytes(place);
            self.check_place(place)
        });
        figures.used_bytes += used_bytes;
        let _ = report(placed, on_damage);
        let mut last = fences.lower;
        for i in 0..node.meta.count {
            let Ok(Some(key)) = report(node.node.key(i), on_damage) else { continue };
            let is_first = i == 0;
            let is_above = last.is_none_or(|last| if is_first { last <= key } else { last < key });
            if !is_above || fences.upper.is_some_and(|upper| key >= upper) {
                on_damage(Damage { offset: node.node.at.0, what: "a key is out of order" });
            }
            last = Some(key);
            if node.meta.level == 0 {
                self.check_value(node, (i, key), figures, on_damage);
            }
        }
    }

    fn check_value(
        &self,
        leaf: &Reached<'_, M>,
        (i, key): (usize, &[u8]),
        figures: &mut Figures,
        on_damage: OnDamage<'_>,
    ) {
        match report(self.value_of(leaf, i, key::checksum(key)), on_damage) {
            Ok(Some(Some(value))) => {
                figures.key_count += 1;
                if !value.is_intact() {
                    on_damage(Damage { offset: value.place.offset.0, what: "a value's checksum does not fit" });
                }
            }
            Ok(Some(None)) => figures.dead_count += 1,
            _ => {}
        }
    }

    fn check_place(&self, place: Place) -> Result<(), Error> {
        let damaged = |what| Error::Damaged { offset: place.offset.0, what };
        self.heap.table().check_place(place).map_err(|wrong| damaged(wrong.what))?;
        if self.heap.table().is_free(place) { Err(damaged("a word names a place that is free")) } else { Ok(()) }
    }
}

/// Reports damage; other errors are returned.
fn report<T>(result: Result<T, Error>, on_damage: OnDamage<'_>) -> Result<Option<T>, Error> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(Error::Damaged { offset, what }) => {
            on_damage(Damage { offset, what });
            Ok(None)
        }
        Err(error) => Err(error),
    }
}
