//! The sweep after opening: marks everything that the tree reaches, so that the heap can free everything else.
//!
//! Levels are walked from the leaves up, so that a separator that a split moves up is found either in the old node or
//! in the new one. A writer that releases a place under a node's lock marks the place there (`Tree::let_go`), so a
//! place that is unlinked before the walk passes is not handed out twice.

use core::iter;

use heap::{InvalidPlace, Place, PlaceKind};
use pmem::{Backoff, Dram, Medium};

use crate::Error;
use crate::canary;
use crate::descent::Reached;
use crate::retire::Retire;
use crate::tree::Tree;
use crate::word;

impl<M: Medium, D: Dram, R: Retire<M, D>> Tree<M, D, R> {
    /// Walks the whole tree and frees everything that it does not reach. All free space is known when this returns,
    /// even if another thread's sweep has found it.
    ///
    /// # Errors
    /// [`Error::Damaged`], with nothing freed; [`Error::Heap`] if the medium fails.
    pub fn sweep(&self) -> Result<(), Error> {
        if self.heap.is_swept() {
            return Ok(());
        }
        (0..self.lanes.count()).try_for_each(|lane| self.mark(self.lanes.log(lane)))?;
        self.each_node_upwards(|node| {
            if node.meta.level == 0 {
                self.count_vacated(self.lack_of(node));
            }
            self.each_place(node, &mut |place| self.mark(place))
        })?;
        self.heap.sweep().finish(&self.medium);
        let mut backoff = Backoff::long();
        while self.medium.is_writable() && !self.heap.is_swept() && !self.medium.breaks(canary::SWEEP_NOT_AWAITED) {
            backoff.relax();
        }
        Ok(())
    }

    /// Calls `each` with every place that the tree occupies, except the lanes' logs.
    ///
    /// # Errors
    /// [`Error::Damaged`] if a word or a node is damaged.
    pub fn each_named(&self, each: &mut dyn FnMut(Place)) -> Result<(), Error> {
        self.each_node_upwards(|node| {
            self.each_place(node, &mut |place| {
                each(place);
                Ok(())
            })
        })
    }

    fn each_node_upwards(&self, mut each: impl FnMut(&Reached<'_, M>) -> Result<(), Error>) -> Result<(), Error> {
        let mut level = 0;
        while self.each_node(level, |_, node| each(node))? {
            level += 1;
        }
        Ok(())
    }

    fn mark(&self, place: Place) -> Result<(), Error> {
        let damaged = |wrong: InvalidPlace| Error::Damaged { offset: wrong.offset, what: wrong.what };
        self.heap.sweep().mark_reached(place).map(drop).map_err(damaged)
    }

    /// Calls `each` with every place that a node occupies or refers to, except its children.
    pub(crate) fn each_place(
        &self,
        node: &Reached<'_, M>,
        each: &mut dyn FnMut(Place) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.places(node).try_for_each(|place| each(place?))
    }

    /// Iterates over the same places, with an error for each place that damage hides.
    pub(crate) fn places<'n>(
        &self,
        Reached { node, meta, .. }: &'n Reached<'_, M>,
    ) -> impl Iterator<Item = Result<Place, Error>> + use<'n, M, D, R> {
        let own = Place { offset: node.at, kind: PlaceKind::Slot(self.class) };
        let of_pair = move |i| {
            let (key, value) = node.pair(i);
            let has_value = meta.level == 0 && value != 0;
            [Some(word::key_place(node.at, key)), has_value.then(|| word::place(node.value_at(i), value))]
        };
        iter::once(Ok(own)).chain((0..meta.count).flat_map(of_pair).flatten())
    }
}
