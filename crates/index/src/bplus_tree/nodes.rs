//! The nodes of a tree, for the threads that add nodes and free them (`split`, `merge`).

use pmem::Dram;

use super::NoDram;
use super::descent::{Root, RootWord};
use super::memory::Memory;

/// The tree, and the memory of its nodes.
#[derive(Debug)]
pub(super) struct Nodes<D: Dram> {
    root_word: RootWord,
    memory: Memory<D>,
}

impl<D: Dram> Nodes<D> {
    pub(super) fn new(root: Root, memory: Memory<D>) -> Nodes<D> {
        Nodes { root_word: RootWord::new(root), memory }
    }

    /// Creates an empty tree, which is one leaf.
    pub(super) fn empty(dram: D) -> Result<Nodes<D>, NoDram> {
        let memory = Memory::new(dram);
        let leaf = memory.new_leaf()?.link();
        Ok(Nodes::new(Root::new(leaf.cast(), 0), memory))
    }

    #[inline(always)]
    pub(super) fn root_word(&self) -> &RootWord {
        &self.root_word
    }

    pub(super) fn memory(&self) -> &Memory<D> {
        &self.memory
    }

    /// Returns a function that replaces the root by an empty leaf, and retires all nodes.
    pub(super) fn clearing(&self) -> Result<impl FnOnce() + '_, NoDram> {
        let leaf = self.memory.new_leaf()?;
        Ok(move || {
            let _pin = epoch::pin();
            let old = self.root_word.replace_root(Root::new(leaf.link().cast(), 0));
            self.retire_all(old.node(), old.height());
        })
    }

    /// Retires a node and everything below it. No thread can find or change these nodes any more.
    fn retire_all(&self, node: *mut u8, level: usize) {
        if level == 0 {
            self.root_word.leaf(node).version.end();
            return self.memory.retire(self.root_word.leaf(node));
        }
        let inner = self.root_word.inner(node);
        inner.version.end();
        let (separators, children) = inner.contents();
        children.into_iter().for_each(|child| self.retire_all(child, level - 1));
        separators.into_iter().for_each(|separator| self.memory.retire_separator(separator));
        self.memory.retire(inner);
    }
}
