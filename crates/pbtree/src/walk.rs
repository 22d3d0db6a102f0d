//! Walks over all nodes of a level, from the first to the last, while other threads read and write.
//!
//! A node is shown while it is locked, shared. Between two nodes only a copy of the separator between them is held. A
//! split moves pairs behind a separator to the right, or a separator up. So a walk visits every pair that stays, one
//! level at a time, and a walk from the leaves up visits every separator. No node is merged while a walk is running
//! (`merge.rs`).

use heap::HeapError;
use pmem::{Dram, DramBox, Medium};

use crate::Error;
use crate::layout::KEY_BYTES_MAX;
use crate::locks::{Held, Mode, NodeLock, WaitPolicy};
use crate::nodes::{Nodes, Reached, Target};

/// A key, copied into allocated memory.
struct Copied<'d, D: Dram> {
    bytes: DramBox<[u8; KEY_BYTES_MAX], &'d D>,
    len: Option<usize>,
}

impl<'d, D: Dram> Copied<'d, D> {
    fn nothing(dram: &'d D) -> Result<Copied<'d, D>, Error> {
        // SAFETY: zeros are bytes.
        let bytes = unsafe { DramBox::zeroed(dram) }.ok_or(HeapError::NoDram { wanted_bytes: KEY_BYTES_MAX })?;
        Ok(Copied { bytes, len: None })
    }

    fn set(&mut self, key: &[u8]) {
        self.bytes[..key.len()].copy_from_slice(key);
        self.len = Some(key.len());
    }

    fn get(&self) -> Option<&[u8]> {
        self.len.map(|len| &self.bytes[..len])
    }
}

/// The separators around a node; `None` at the tree's ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Fences<'a> {
    /// No key of the node is below.
    pub(crate) lower: Option<&'a [u8]>,
    /// Every key of the node is below.
    pub(crate) upper: Option<&'a [u8]>,
}

/// The walks over a tree: they share a latch that a merge holds exclusively.
pub(crate) struct Walks<D: Dram> {
    latch: NodeLock,
    /// Holds the separators around the present node.
    dram: D,
}

impl<D: Dram> Walks<D> {
    pub(crate) fn new(dram: D) -> Walks<D> {
        Walks { latch: NodeLock::default(), dram }
    }

    /// Keeps walks from running until the result is dropped.
    pub(crate) fn exclude(&self, wait_policy: WaitPolicy) -> Result<Held<'_>, Error> {
        self.latch.lock(Mode::Exclusive, wait_policy)
    }

    /// Calls `each` with every node of a level. Returns false if the tree has no such level.
    pub(crate) fn each_node<M: Medium>(
        &self,
        nodes: &Nodes<M, D>,
        level: u8,
        mut each: impl FnMut(Fences<'_>, &Reached<'_, M>) -> Result<(), Error>,
    ) -> Result<bool, Error> {
        let _walk = self.latch.lock(Mode::Shared, WaitPolicy::Wait)?;
        let (mut lower, mut upper) = (Copied::nothing(&self.dram)?, Copied::nothing(&self.dram)?);
        loop {
            upper.len = None;
            let is_there = nodes.medium().held(|| {
                let target = lower.get().map_or(Target::First, Target::At);
                let node = nodes.descend(target, (level, Mode::Shared), WaitPolicy::Wait, |inner, child| {
                    if child < inner.meta.count {
                        upper.set(inner.node.key(child)?);
                    }
                    Ok(())
                })?;
                if node.meta.level < level {
                    return Ok(false);
                }
                each(Fences { lower: lower.get(), upper: upper.get() }, &node).map(|()| true)
            })?;
            if !is_there {
                return Ok(false);
            }
            nodes.medium().yield_to_scheduler();
            if upper.len.is_none() {
                return Ok(true);
            }
            core::mem::swap(&mut lower, &mut upper);
        }
    }

    /// Calls `each` with every node, from the leaves up.
    pub(crate) fn each_node_upwards<M: Medium>(
        &self,
        nodes: &Nodes<M, D>,
        mut each: impl FnMut(&Reached<'_, M>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut level = 0;
        while self.each_node(nodes, level, |_, node| each(node))? {
            level += 1;
        }
        Ok(())
    }
}
