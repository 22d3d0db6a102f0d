//! Nodes: the keys of a checkpoint, packed in key order. Each node names the one before it.
//!
//! Short keys are in the nodes, so that an opening need not read each key's record, which is anywhere in the region
//! (decision 41).

use std::slice::ChunksExact;

use heap::{FEATURE_KEYS_IN_NODES, Heap, HeapError};
use index::Position;
use pmem::{Checksum, Dram, Medium, Offset};

use crate::bytes::{put_u32, put_u64, u32_at, u64_at};
use crate::layout::{NODE_BYTES, NODE_HEADER_BYTES, NODE_KEY_BYTES, NODE_RECORD_BYTES, SHORT_KEY_BYTES_MAX};

/// A length for keys that are only in their record.
const NOT_HERE: u8 = u8::MAX;
/// The offset of the key in an entry.
const KEY_AT: usize = NODE_KEY_BYTES - SHORT_KEY_BYTES_MAX;

/// The data that the nodes of a store have of each key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NodeForm {
    /// The position of its record: stores that were created before format 1.2.
    Records,
    /// In addition the key, if it is short.
    Keys,
}

impl NodeForm {
    pub(crate) fn of<D: Dram>(heap: &Heap<D>) -> NodeForm {
        if heap.region().has_features(FEATURE_KEYS_IN_NODES) { NodeForm::Keys } else { NodeForm::Records }
    }

    const fn entry_bytes(self) -> usize {
        match self {
            NodeForm::Records => NODE_RECORD_BYTES,
            NodeForm::Keys => NODE_KEY_BYTES,
        }
    }

    pub(crate) const fn key_count_max(self) -> usize {
        (NODE_BYTES as usize - NODE_HEADER_BYTES) / self.entry_bytes()
    }
}

/// A record of a checkpoint or a log, and the lane of its changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Stored {
    pub(crate) record: Position,
    pub(crate) checksum: u32,
    pub(crate) lane: u32,
}

/// A record, and its key if the record need not be read for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Named<'b> {
    pub(crate) stored: Stored,
    pub(crate) key: Option<&'b [u8]>,
}

/// A node that is being filled.
pub(crate) struct Draft {
    form: NodeForm,
    bytes: Vec<u8>,
    count: usize,
}

impl Draft {
    pub(crate) fn new(form: NodeForm) -> Draft {
        let mut draft = Draft { form, bytes: Vec::with_capacity(NODE_BYTES as usize), count: 0 };
        draft.clear();
        draft
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(crate) fn is_full(&self) -> bool {
        self.count == self.form.key_count_max()
    }

    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.resize(NODE_HEADER_BYTES, 0);
        self.count = 0;
    }

    /// Appends a record, with its key if the form has keys and the key is short.
    pub(crate) fn push(&mut self, stored: Stored, key: &[u8]) {
        let mut entry = [0; NODE_KEY_BYTES];
        put_u64(&mut entry, 0, stored.record.word());
        put_u32(&mut entry, 8, stored.checksum);
        match self.form {
            NodeForm::Records => put_u32(&mut entry, 12, stored.lane),
            NodeForm::Keys => {
                let here = Some(key).filter(|key| key.len() <= SHORT_KEY_BYTES_MAX);
                entry[12] = stored.lane as u8;
                entry[13] = here.map_or(NOT_HERE, |key| key.len() as u8);
                here.into_iter().for_each(|key| entry[KEY_AT..][..key.len()].copy_from_slice(key));
            }
        }
        self.bytes.extend_from_slice(&entry[..self.form.entry_bytes()]);
        self.count += 1;
    }

    /// Completes the node, which follows the node at `previous`, and returns its bytes.
    pub(crate) fn seal(&mut self, number: u64, previous: Offset) -> &[u8] {
        put_u64(&mut self.bytes, 0, previous.0);
        put_u32(&mut self.bytes, 8, self.count as u32);
        let check = checksum(number, &self.bytes);
        put_u32(&mut self.bytes, 12, check);
        &self.bytes
    }
}

/// Returns the node before this one as stored, whether this node is intact or not.
pub(crate) fn previous(bytes: &[u8]) -> Offset {
    Offset(u64_at(bytes, 0))
}

/// Returns the bytes of a node of the current checkpoint.
pub(crate) fn bytes<M: Medium>(medium: &M, at: Offset) -> Result<&[u8], HeapError> {
    // SAFETY: no thread writes to the nodes of a checkpoint until a later one has replaced it.
    Ok(unsafe { medium.bytes(at.span(NODE_BYTES)) }?)
}

/// Returns the node's keys, in order.
pub(crate) fn load<M: Medium>(medium: &M, form: NodeForm, number: u64, at: Offset) -> Result<Keys<'_>, HeapError> {
    read(form, number, at, bytes(medium, at)?)
}

fn read(form: NodeForm, number: u64, at: Offset, bytes: &[u8]) -> Result<Keys<'_>, HeapError> {
    let damaged = |what| HeapError::Damaged { offset: at.0, what };
    let count = u32_at(bytes, 8) as usize;
    if count > form.key_count_max() || bytes.len() as u64 != NODE_BYTES {
        return Err(damaged("a node has too many keys"));
    }
    let bytes = &bytes[..NODE_HEADER_BYTES + count * form.entry_bytes()];
    if checksum(number, bytes) != u32_at(bytes, 12) {
        return Err(damaged("a node's checksum does not fit"));
    }
    Ok(Keys { form, entries: bytes[NODE_HEADER_BYTES..].chunks_exact(form.entry_bytes()) })
}

/// The keys of a node whose checksum matches.
#[derive(Clone)]
pub(crate) struct Keys<'b> {
    form: NodeForm,
    entries: ChunksExact<'b, u8>,
}

impl<'b> Iterator for Keys<'b> {
    type Item = Named<'b>;

    #[inline]
    fn next(&mut self) -> Option<Named<'b>> {
        let entry = self.entries.next()?;
        let (record, checksum) = (Position::from_word(u64_at(entry, 0)), u32_at(entry, 8));
        let (lane, key) = match self.form {
            NodeForm::Records => (u32_at(entry, 12), None),
            // An impossible length means, like 255, that the key is not in the node.
            NodeForm::Keys => (entry[12].into(), entry[KEY_AT..].get(..usize::from(entry[13]))),
        };
        Some(Named { stored: Stored { record, checksum, lane }, key })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.entries.size_hint()
    }
}

impl ExactSizeIterator for Keys<'_> {}

fn checksum(number: u64, bytes: &[u8]) -> u32 {
    let salted = Checksum::default().update(&number.to_le_bytes());
    salted.update(&bytes[..12]).update(&bytes[NODE_HEADER_BYTES..]).value()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn node_has_what_was_put_into_it() {
        let keys = [&b""[..], b"a", b"a key of sixteen", b"a key of 17 bytes"];
        for form in [NodeForm::Records, NodeForm::Keys] {
            let mut draft = Draft::new(form);
            for _ in 0..2 {
                let stored = |i: usize| Stored { record: Position::from_word(64 * i as u64), checksum: 7, lane: 63 };
                assert!(draft.is_empty());
                (0..form.key_count_max()).for_each(|i| {
                    assert!(!draft.is_full());
                    draft.push(stored(i), keys[i % keys.len()]);
                });
                assert!(draft.is_full());
                let mut bytes = draft.seal(5, Offset(4096)).to_vec();
                bytes.resize(NODE_BYTES as usize, 0xAA);
                assert_eq!(previous(&bytes), Offset(4096));
                let named = read(form, 5, Offset(0), &bytes).unwrap();
                assert_eq!(named.len(), form.key_count_max());
                for (i, named) in named.enumerate() {
                    let key = keys[i % keys.len()];
                    let is_here = form == NodeForm::Keys && key.len() <= SHORT_KEY_BYTES_MAX;
                    assert_eq!(named, Named { stored: stored(i), key: is_here.then_some(key) });
                }
                assert!(read(form, 6, Offset(0), &bytes).is_err());
                draft.clear();
            }
        }
        assert_eq!((NodeForm::Records.key_count_max(), NodeForm::Keys.key_count_max()), (255, 136));
    }
}
