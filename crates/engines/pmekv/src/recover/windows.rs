//! The records that nodes and logs name, in windows: while one window is read, the lines of the next one are
//! prefetched, all in a row (decision 44).

use arrayvec::ArrayVec;
use heap::HeapError;
use pmem::{Medium, Offset};

use super::lost::{Lost, past};
use crate::node::{self, Keys, Named, NodeForm};

/// The number of records that are prefetched, read and marked together. A prefetch waits for the page's translation,
/// and so do instructions long after it; several prefetches in a row wait together.
pub(super) const WINDOW_COUNT: usize = 64;

/// Adjacent records.
pub(super) type Window<'o> = ArrayVec<Named<'o>, WINDOW_COUNT>;

/// Windows over several batches of records, one batch after the other.
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

/// Returns the keys of the nodes of the checkpoint with this number, node by node.
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
