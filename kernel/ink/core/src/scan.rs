//! Scans: as many items as fit into an answer, in the order of their keys.
//!
//! An answer consists of records without gaps: the key's length (4 bytes), the value's (4), the key, the value. The
//! caller continues behind the last key that it got. Every item is shown with a value that it had at some time during
//! the call.

use core::ops::Bound;

use pbtree::{Direction, Ended, Page, Value};
use pmem::Medium;

use crate::errno::{self, EINTR, EUCLEAN};
use crate::fence::Fence;
use crate::host;
use crate::requests::Room;
use crate::store::{Store, is_past};

/// The size of a record before its key.
const HEAD_BYTES: usize = 8;

/// The result of a scan.
#[derive(Default)]
pub(crate) struct Scanned {
    pub(crate) count: u64,
    pub(crate) used_bytes: usize,
    /// True if there may be more items.
    pub(crate) has_more: bool,
    /// The size of the first item that did not fit.
    pub(crate) wanted_bytes: usize,
}

/// The target of a leaf's items.
struct Answer<'r> {
    room: &'r mut Room,
    found: Scanned,
    fence: &'r mut Fence,
    is_full: bool,
    is_damaged: bool,
    /// An error if the fence could not be copied.
    fenced: Result<(), i64>,
}

impl Page for Answer<'_> {
    fn item(&mut self, key: &[u8], value: &Value<'_>) {
        if self.is_full || is_past(value.expiry) {
            return;
        }
        self.is_damaged |= !value.is_intact();
        let (at, len) = (self.found.used_bytes, HEAD_BYTES + key.len() + value.bytes.len());
        if len > self.room.len() - at {
            self.is_full = true;
            self.found.wanted_bytes = len;
            return;
        }
        self.room.copy(at, &(key.len() as u32).to_le_bytes());
        self.room.copy(at + 4, &(value.bytes.len() as u32).to_le_bytes());
        self.room.copy(at + HEAD_BYTES, key);
        self.room.copy(at + HEAD_BYTES + key.len(), value.bytes);
        self.found.used_bytes += len;
        self.found.count += 1;
    }

    fn ends_at(&mut self, fence: &[u8]) {
        self.fenced = self.fence.set(fence);
    }
}

impl Store {
    /// Fills `room` with the items from `from` on.
    pub(crate) fn scan(&self, from: Bound<&[u8]>, room: &mut Room) -> Result<Scanned, i64> {
        let (mut at, mut behind) = (Fence::new(), Fence::new());
        let (mut here, found) = (&mut at, Scanned::default());
        let mut answer = Answer { room, found, fence: &mut behind, is_full: false, is_damaged: false, fenced: Ok(()) };
        let mut scan = self.tree.scanning(Direction::Forward);
        let mut ended = scan.page(from, usize::MAX, &mut answer).map_err(errno::of)?;
        while ended == Ended::AtFence && !answer.is_full {
            answer.fenced?;
            self.tree.medium().yield_to_scheduler();
            if host::is_killed() {
                return Err(EINTR);
            }
            core::mem::swap(&mut here, &mut answer.fence);
            let next = Bound::Included(here.get());
            ended = scan.page(next, usize::MAX, &mut answer).map_err(errno::of)?;
        }
        if answer.is_damaged { Err(EUCLEAN) } else { Ok(Scanned { has_more: answer.is_full, ..answer.found }) }
    }
}
