//! Broken variants: the faulty code of the canaries whose fault is more than an expression. Only tests reach it
//! (`docs/decisions/0005-prove-the-crash-explorer-with-broken-variants.md`).

use core::sync::atomic::Ordering;

use pmem::{Medium, Offset};

/// Stores the concatenation of `parts` at `at`, without a flush.
#[cold]
pub(crate) fn store_unflushed<M: Medium>(medium: &M, mut at: Offset, parts: &[&[u8]]) {
    let mut bytes = parts.iter().copied().flatten().copied();
    while let Some(first) = bytes.next() {
        let mut word = [first, 0, 0, 0, 0, 0, 0, 0];
        word[1..].iter_mut().zip(&mut bytes).for_each(|(to, from)| *to = from);
        medium.store(at, u64::from_le_bytes(word), Ordering::Relaxed);
        at = at.plus(8);
    }
}
