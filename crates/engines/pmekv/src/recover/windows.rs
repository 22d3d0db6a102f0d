//! What nodes and logs name, by windows: while one is read, the next one's lines have been asked for, all in a row (decision 81).

use arrayvec::ArrayVec;
use heap::HeapError;
use pmem::{Medium, Offset};

use super::lost::{Lost, past};
use crate::node::{self, Keys, Named, NodeForm};

/// Records that are asked for, read and marked together. An instruction that asks for a line waits for the page's translation, and so does what comes
/// long after it; some in a row wait together.
pub(super) const WINDOW_COUNT: usize = 64;

/// Records that are named beside each other.
pub(super) type Window<'o> = ArrayVec<Named<'o>, WINDOW_COUNT>;

/// Windows of what several batches name, one batch after the other.
pub(super) struct Windows<I, B> {
    batches: I,
    batch: Option<B>,
}

impl<I, B> Windows<I, B> {
    pub(super) fn of(batches: I) -> Windows<I, B> {
        Windows { batches, batch: None }
    }
}

impl<'o, I, B> Iterator for Windows<I, B>
where
    I: Iterator<Item = Result<B, HeapError>>,
    B: Iterator<Item = Named<'o>>,
{
    type Item = Result<Window<'o>, HeapError>;

    fn next(&mut self) -> Option<Result<Window<'o>, HeapError>> {
        loop {
            let window: Window<'o> =
                self.batch.iter_mut().flat_map(|batch| batch.by_ref().take(WINDOW_COUNT)).collect();
            if !window.is_empty() {
                return Some(Ok(window));
            }
            match self.batches.next()? {
                Ok(batch) => self.batch = Some(batch),
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

/// The keys of nodes of the checkpoint of this number, node by node.
pub(super) fn read_nodes<'o: 'l, 'l, M: Medium>(
    medium: &'o M,
    (form, number): (NodeForm, u64),
    nodes: &'l [Offset],
    lost: Option<&'l Lost>,
) -> impl Iterator<Item = Result<Keys<'o>, HeapError>> + 'l {
    nodes.iter().zip(1..).filter_map(move |(&at, after)| {
        nodes.get(after).into_iter().for_each(|next| medium.prefetch_line(*next));
        past(lost, node::load(medium, form, number, at)).transpose()
    })
}
