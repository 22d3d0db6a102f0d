//! Ranges of trees with types.

use std::iter::FusedIterator;
use std::marker::PhantomData;

use engine::Error;

use super::{Key, Value, decoded_item};
use crate::{Item, Range, TxRange};

/// An iterator over a range of a tree with types, from both ends.
#[derive(Debug)]
pub struct Decoded<R, K, V> {
    items: R,
    types: PhantomData<fn() -> (K, V)>,
}

/// An iterator over a range, from [`super::TypedTree::range`].
pub type TypedRange<K, V> = Decoded<Range, K, V>;

/// An iterator over a range of a transaction, from [`super::TypedTxTree::range`].
pub type TypedTxRange<'s, K, V> = Decoded<TxRange<'s>, K, V>;

impl<R, K, V> Decoded<R, K, V> {
    pub(super) fn of(items: R) -> Decoded<R, K, V> {
        Decoded { items, types: PhantomData }
    }
}

impl<R: Iterator<Item = Result<Item, Error>>, K: Key, V: Value> Iterator for Decoded<R, K, V> {
    type Item = Result<(K, V), Error>;

    fn next(&mut self) -> Option<Result<(K, V), Error>> {
        self.items.next().map(|item| decoded_item(item?))
    }
}

impl<R: DoubleEndedIterator<Item = Result<Item, Error>>, K: Key, V: Value> DoubleEndedIterator for Decoded<R, K, V> {
    fn next_back(&mut self) -> Option<Result<(K, V), Error>> {
        self.items.next_back().map(|item| decoded_item(item?))
    }
}

impl<R: FusedIterator<Item = Result<Item, Error>>, K: Key, V: Value> FusedIterator for Decoded<R, K, V> {}
