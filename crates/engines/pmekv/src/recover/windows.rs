//! What nodes and logs name, by windows: while one is read, the next one's lines have been asked for, all in a row (decision 81).

use arrayvec::ArrayVec;
use heap::HeapError;
use pmem::{Medium, Offset};

use super::lost::{Lost, past};
use super::node_bytes;
use crate::layout::NODE_KEY_COUNT_MAX;
use crate::node::{self, Stored};

/// Records that are asked for, read and marked together. An instruction that asks for a line waits for the page's translation, and so does what comes
/// long after it; some in a row wait together.
pub(super) const WINDOW_COUNT: usize = 64;

/// Records that are named beside each other.
pub(super) type Named = ArrayVec<Stored, WINDOW_COUNT>;

/// Windows of what several batches name, one batch after the other.
pub(super) struct Windows<I> {
    batches: I,
    batch: std::vec::IntoIter<Stored>,
}

impl<I: Iterator<Item = Result<Vec<Stored>, HeapError>>> Windows<I> {
    pub(super) fn of(batches: I) -> Windows<I> {
        Windows { batches, batch: Vec::new().into_iter() }
    }
}

impl<I: Iterator<Item = Result<Vec<Stored>, HeapError>>> Iterator for Windows<I> {
    type Item = Result<Named, HeapError>;

    fn next(&mut self) -> Option<Result<Named, HeapError>> {
        while self.batch.len() == 0 {
            match self.batches.next()? {
                Ok(batch) => self.batch = batch.into_iter(),
                Err(error) => return Some(Err(error)),
            }
        }
        Some(Ok(self.batch.by_ref().take(WINDOW_COUNT).collect()))
    }
}

/// The keys of nodes of the checkpoint of this number, node by node.
pub(super) fn read_nodes<'o, M: Medium>(
    medium: &'o M,
    number: u64,
    nodes: &'o [Offset],
    lost: Option<&'o Lost>,
) -> impl Iterator<Item = Result<Vec<Stored>, HeapError>> + 'o {
    nodes.iter().zip(1..).map(move |(&at, after)| {
        nodes.get(after).into_iter().for_each(|next| medium.prefetch_line(*next));
        let mut keys = Vec::with_capacity(NODE_KEY_COUNT_MAX);
        past(lost, node_bytes(medium, at).and_then(|bytes| node::read(number, at, bytes, &mut keys)))?;
        Ok(keys)
    })
}
