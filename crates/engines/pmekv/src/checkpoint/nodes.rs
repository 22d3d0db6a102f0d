//! The nodes of a checkpoint under way.

use std::iter::{self, Peekable};

use engine::Error;
use pmem::{Dram, Medium, Offset};

use crate::lanes::Lanes;
use crate::node::{self, Draft, Named, NodeForm, Stored};
use crate::reader::Reader;
use crate::root::Checkpoint;

/// Writes the nodes of a checkpoint.
pub(super) struct NodeWriter<'a, M: Medium, D: Dram> {
    reader: &'a Reader<M, D>,
    lanes: &'a Lanes,
    /// The checkpoint's number.
    number: u64,
    nodes: Vec<Offset>,
    draft: Draft,
    key_count: u64,
    last_key: Vec<u8>,
    has_space_ahead: bool,
}

impl<'a, M: Medium, D: Dram> NodeWriter<'a, M, D> {
    pub(super) fn new(reader: &'a Reader<M, D>, lanes: &'a Lanes, number: u64) -> NodeWriter<'a, M, D> {
        NodeWriter {
            reader,
            lanes,
            number,
            nodes: Vec::new(),
            draft: Draft::new(NodeForm::of(reader.region().heap())),
            key_count: 0,
            last_key: Vec::new(),
            has_space_ahead: true,
        }
    }

    /// Writes the records of all keys. Damaged records keep the keys that the nodes of the checkpoint `before` have.
    pub(super) fn write_all(&mut self, before: &Checkpoint) -> Result<(), Error> {
        let (reader, region) = (self.reader, self.reader.region());
        let (form, number) = (NodeForm::of(region.heap()), before.number);
        let before = before.nodes.iter().filter_map(|&at| node::load(region.medium(), form, number, at).ok());
        let mut before = before.flatten().peekable();
        reader.contents().each_record(&mut |record, item| {
            let lane = self.lanes.of(reader.hash(item.key)) as u32;
            let stored = Stored { record, checksum: item.header.checksum, lane };
            match key_before(&mut before, &stored, item.key) {
                Some(other) if !item.is_intact() => self.push(stored, other),
                _ => self.push(stored, item.key),
            }
        })?;
        if self.draft.is_empty() { Ok(()) } else { self.write_node() }
    }

    /// Returns the nodes that were written.
    pub(super) fn nodes(&self) -> &[Offset] {
        &self.nodes
    }

    /// Returns the nodes, and their number of keys.
    pub(super) fn into_nodes(self) -> (Vec<Offset>, u64) {
        (self.nodes, self.key_count)
    }

    fn push(&mut self, stored: Stored, key: &[u8]) -> Result<(), Error> {
        // An opening would refuse such nodes.
        if self.key_count > 0 && *self.last_key >= *key {
            let offset = stored.record.offset().0;
            return Err(Error::Corrupt { offset, what: "a record's key is out of order" });
        }
        self.last_key.clear();
        self.last_key.extend_from_slice(key);
        self.draft.push(stored, key);
        self.key_count += 1;
        if self.draft.is_full() {
            self.write_node()?;
            self.has_space_ahead = self.has_space_ahead && self.keeps_space_ahead();
        }
        Ok(())
    }

    /// Prepares free space ahead: during a checkpoint of many keys, writers may use all that is ready. Returns false if
    /// no more can be prepared.
    fn keeps_space_ahead(&self) -> bool {
        let (heap, medium) = (self.reader.region().heap(), self.reader.region().medium());
        !heap.runs_low() || heap.prepare(medium, heap.ahead_bytes())
    }

    /// Writes a node; the draft is empty afterwards.
    fn write_node(&mut self) -> Result<(), Error> {
        let region = self.reader.region();
        let (at, previous) = (self.lanes.reserve().slot_for_node(region)?, self.nodes.last().copied());
        self.nodes.push(at);
        // SAFETY: the slot belongs to the reserve, and nothing names it.
        unsafe { region.medium().stream(at, &[self.draft.seal(self.number, previous.unwrap_or_default())]) };
        self.draft.clear();
        Ok(())
    }
}

/// Returns the key that nodes have for a record, if it differs from `key`. Reads nodes up to the record, or else up to
/// `key`.
fn key_before<'n>(
    nodes: &mut Peekable<impl Iterator<Item = Named<'n>>>,
    stored: &Stored,
    key: &[u8],
) -> Option<&'n [u8]> {
    let is_its = |named: &Named<'_>| named.stored.record == stored.record;
    let mut passed =
        iter::from_fn(|| nodes.next_if(|named| is_its(named) || named.key.is_none_or(|other| other <= key)));
    let its = passed.find(is_its).filter(|named| named.stored.checksum == stored.checksum);
    its.and_then(|named| named.key).filter(|other| *other != key)
}
