//! Broken variants: the faulty code of the canaries whose fault is more than an expression. Only tests reach it
//! (`docs/decisions/0005-prove-the-crash-explorer-with-broken-variants.md`).

use std::sync::atomic::Ordering;

use pmem::{Bytes, Offset, Span, Taken};

use crate::{File, Journaled};

/// Holds entries back: the entries of `spans` follow at the next commit.
#[cold]
pub(crate) fn hold<F: File>(medium: &Journaled<F>, spans: impl Iterator<Item = Span>) {
    let held = spans.map(|span| (span.start, loaded(medium, span)));
    medium.journal.log.appender().held().extend(held);
}

/// Publishes words whose entries are held back.
#[cold]
pub(crate) fn publish_late<F: File>(medium: &Journaled<F>, words: &[(Offset, u64)], key: u64) -> Taken {
    let Some(append) = medium.journal.reserve(words.len(), words.len() * 8) else { return Taken::No };
    append.note_published(key);
    words.iter().for_each(|&(at, word)| medium.store(at, word, Ordering::Release));
    drop(append);
    hold(medium, words.iter().map(|(at, _)| at.span(8)));
    Taken::Yes
}

/// Returns the present bytes of a span.
fn loaded<F: File>(medium: &Journaled<F>, span: Span) -> Vec<u8> {
    let (first, end) = (span.start.0 & !7, span.start.0 + span.len_bytes);
    let words = (first..end).step_by(8).map(|at| medium.load(Offset(at), Ordering::Relaxed).to_ne_bytes());
    let mut bytes: Vec<u8> = words.flatten().collect();
    bytes.truncate((end - first) as usize);
    bytes.split_off((span.start.0 - first) as usize)
}

/// Appends the entries that were held back, in the reverse order.
#[cold]
pub(crate) fn append_held<F: File>(medium: &Journaled<F>) {
    let held = std::mem::take(&mut *medium.journal.log.appender().held());
    for (at, bytes) in held.into_iter().rev() {
        if let Some(mut append) = medium.journal.reserve(1, bytes.len()) {
            append.push(at, bytes.len(), |frame| frame.extend(bytes));
        }
    }
}
