//! The root names the current checkpoint; a record, written before, has the checkpoint's nodes and cuts.

use pmem::{Medium, Offset};

use crate::bytes::{Line, is_sealed, put_u64, salt, seal_line, u64_at};
use crate::canary;
use crate::lanes::store_word;
use crate::layout::{LANE_COUNT_MAX, RECORD_BYTES, RECORD_HEADER_BYTES, ROOT, record};

/// The checkpoint that the root names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Checkpoint {
    pub(crate) number: u64,
    /// The last node, or null.
    pub(crate) last: Offset,
    pub(crate) key_count: u64,
    pub(crate) cuts: [u64; LANE_COUNT_MAX],
    /// The nodes, from the first to the last.
    pub(crate) nodes: Vec<Offset>,
}

impl Checkpoint {
    /// Creates a checkpoint of no keys.
    pub(crate) fn empty(number: u64, cuts: [u64; LANE_COUNT_MAX]) -> Checkpoint {
        Checkpoint { number, last: Offset::NULL, key_count: 0, cuts, nodes: Vec::new() }
    }

    pub(crate) fn to_bytes(&self, uuid: &[u8; 16]) -> [u8; RECORD_BYTES] {
        let mut bytes = [0; RECORD_BYTES];
        let (header, cuts) = bytes.split_at_mut(RECORD_HEADER_BYTES);
        self.cuts.iter().enumerate().for_each(|(lane, cut)| put_u64(cuts, lane * 8, *cut));
        let header: &mut Line = header.try_into().expect("a line");
        put_u64(header, 0, self.number);
        put_u64(header, 8, self.last.0);
        put_u64(header, 16, self.nodes.len() as u64);
        put_u64(header, 24, self.key_count);
        seal_line(header, salt(uuid), cuts);
        bytes
    }

    /// Returns the checkpoint record of this number and its number of nodes, which are not read yet; `None` if the
    /// bytes are not that record.
    pub(crate) fn from_bytes(bytes: &[u8], number: u64, uuid: &[u8; 16]) -> Option<(Checkpoint, u64)> {
        let (header, cuts) = bytes.split_at(RECORD_HEADER_BYTES);
        let header: &Line = header.try_into().expect("a line");
        if !is_sealed(header, salt(uuid), cuts) || u64_at(header, 0) != number {
            return None;
        }
        let cuts = std::array::from_fn(|lane| u64_at(cuts, lane * 8));
        let key_count = u64_at(header, 24);
        let last = Offset(u64_at(header, 8));
        Some((Checkpoint { number, last, key_count, cuts, nodes: Vec::new() }, u64_at(header, 16)))
    }
}

/// Steps 3 and 4, except the commit, which the caller requests: the checkpoint is current after it.
pub(crate) fn name<M: Medium>(medium: &M, uuid: &[u8; 16], checkpoint: &Checkpoint) {
    let at = if medium.breaks(canary::RECORD_IN_PLACE) { record(0) } else { record(checkpoint.number) };
    // SAFETY: the root does not name this record, and the caller holds the checkpoint's lock.
    unsafe { medium.stream(at, &[&checkpoint.to_bytes(uuid)]) };
    medium.order_unless(canary::ROOT_BEFORE_NODES);
    store_word(medium, ROOT, checkpoint.number);
}
