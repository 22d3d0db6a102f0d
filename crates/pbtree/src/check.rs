//! Checks the tree's consistency.

use heap::{Heap, Place};
use pmem::{Dram, Medium};

use crate::Error;
use crate::key;
use crate::nodes::{Nodes, Reached};
use crate::read::Reader;
use crate::walk::{Fences, Walks};

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

/// A check in progress.
pub(crate) struct Check<'c, M: Medium, D: Dram> {
    reader: &'c Reader<M, D>,
    heap: &'c Heap<D>,
    figures: Figures,
    on_damage: OnDamage<'c>,
}

impl<'c, M: Medium, D: Dram> Check<'c, M, D> {
    /// Begins a check. `used_bytes` is the space that the tree uses outside its nodes.
    pub(crate) fn new(
        reader: &'c Reader<M, D>,
        heap: &'c Heap<D>,
        used_bytes: u64,
        on_damage: OnDamage<'c>,
    ) -> Check<'c, M, D> {
        Check { reader, heap, figures: Figures { used_bytes, ..Figures::default() }, on_damage }
    }

    /// Walks all levels while `goes_on` returns true.
    pub(crate) fn run(mut self, walks: &Walks<D>, goes_on: &mut dyn FnMut() -> bool) -> Result<Figures, Error> {
        loop {
            let level = self.figures.level_count as u8;
            let walked = walks.each_node(self.reader.nodes(), level, |fences, node| {
                self.check_node(fences, node);
                if goes_on() { Ok(()) } else { Err(Error::Stopped) }
            });
            match report(walked, self.on_damage)? {
                Some(true) => self.figures.level_count += 1,
                _ => return Ok(self.figures),
            }
        }
    }

    fn check_node(&mut self, fences: Fences<'_>, node: &Reached<'_, M>) {
        self.figures.node_count += 1;
        let (heap, mut used_bytes) = (self.heap, 0);
        let placed = self.reader.nodes().places(node).try_for_each(|place| {
            let place = place?;
            used_bytes += heap.table().place_bytes(place);
            check_place(heap, place)
        });
        self.figures.used_bytes += used_bytes;
        let _ = report(placed, self.on_damage);
        let mut last = fences.lower;
        for i in 0..node.meta.count {
            let Ok(Some(key)) = report(node.node.key(i), self.on_damage) else { continue };
            let is_first = i == 0;
            let is_above = last.is_none_or(|last| if is_first { last <= key } else { last < key });
            if !is_above || fences.upper.is_some_and(|upper| key >= upper) {
                (self.on_damage)(Damage { offset: node.node.at.0, what: "a key is out of order" });
            }
            last = Some(key);
            if node.meta.level == 0 {
                self.check_value(node, i, key);
            }
        }
    }

    fn check_value(&mut self, leaf: &Reached<'_, M>, i: usize, key: &[u8]) {
        match report(self.reader.value_of(leaf, i, key::checksum(key)), self.on_damage) {
            Ok(Some(Some(value))) => {
                self.figures.key_count += 1;
                if !value.is_intact() {
                    let offset = value.place.offset.0;
                    (self.on_damage)(Damage { offset, what: "a value's checksum does not fit" });
                }
            }
            Ok(Some(None)) => self.figures.dead_count += 1,
            _ => {}
        }
    }
}

/// Counts nodes and pairs without reading keys and values.
pub(crate) fn figures<M: Medium, D: Dram>(nodes: &Nodes<M, D>, walks: &Walks<D>) -> Result<Figures, Error> {
    let mut figures = Figures::default();
    while walks.each_node(nodes, figures.level_count as u8, |_, node| {
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

fn check_place<D: Dram>(heap: &Heap<D>, place: Place) -> Result<(), Error> {
    let damaged = |what| Error::Damaged { offset: place.offset.0, what };
    heap.table().check_place(place).map_err(|wrong| damaged(wrong.what))?;
    if heap.table().is_free(place) { Err(damaged("a word names a place that is free")) } else { Ok(()) }
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
