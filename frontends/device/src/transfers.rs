//! Values that did not arrive with their commands: the device requests them (R2T) when there is space, in the order of
//! the commands.
//!
//! # Invariants
//! - Requested values together have at most [`limits::TRANSFER_BYTES_MAX`] bytes.
//! - Data is accepted only for an assigned tag and its command, and in order: no byte twice, and none omitted.
//! - A queue has no two waiting commands with the same identifier, and no more than its number of entries.
//! - A value with a corrupted part is received to its end, so that the following PDUs are parsed correctly, and then
//!   not stored.

use std::collections::VecDeque;

use nvme::{Data, Fatal, FatalCause, Key, Ready, Status, StoreIf};

use crate::limits;

/// A store command whose value is in transfer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Transfer {
    pub(crate) id: u16,
    pub(crate) key: Key,
    pub(crate) when: StoreIf,
    len_bytes: usize,
    tag: u16,
    pub(crate) value: Vec<u8>,
    /// A part of the value had a wrong digest.
    pub(crate) is_corrupt: bool,
}

impl Transfer {
    pub(crate) fn new(id: u16, key: Key, when: StoreIf, len_bytes: usize) -> Transfer {
        Transfer { id, key, when, len_bytes, tag: 0, value: Vec::new(), is_corrupt: false }
    }
}

/// The store commands of a queue that wait for their values.
#[derive(Default)]
pub(crate) struct Transfers {
    waiting: VecDeque<Transfer>,
    active: Vec<Transfer>,
    active_bytes: usize,
    tag_next: u16,
}

impl Transfers {
    /// Adds a command that waits for its value.
    ///
    /// # Errors
    /// Another waiting command has its identifier.
    pub(crate) fn add(&mut self, transfer: Transfer) -> Result<(), Status> {
        if self.waiting.iter().chain(&self.active).any(|other| other.id == transfer.id) {
            return Err(Status::COMMAND_ID_CONFLICT);
        }
        self.waiting.push_back(transfer);
        Ok(())
    }

    pub(crate) fn len(&self) -> usize {
        self.waiting.len() + self.active.len()
    }

    /// Returns the next request for data, if there is space.
    pub(crate) fn next_ready(&mut self) -> Option<Ready> {
        let len_bytes = self.waiting.front()?.len_bytes;
        if self.active_bytes + len_bytes > limits::TRANSFER_BYTES_MAX {
            return None;
        }
        let mut transfer = self.waiting.pop_front()?;
        transfer.tag = self.free_tag();
        self.active_bytes += len_bytes;
        let ready = Ready { id: transfer.id, tag: transfer.tag, offset: 0, len_bytes: len_bytes as u32 };
        self.active.push(transfer);
        Some(ready)
    }

    /// Returns the next unused tag: there are far more tags than queue entries, but a host may be slow with one value.
    fn free_tag(&mut self) -> u16 {
        loop {
            self.tag_next = self.tag_next.wrapping_add(1);
            if self.active.iter().all(|other| other.tag != self.tag_next) {
                return self.tag_next;
            }
        }
    }

    /// Processes data with a valid digest or corrupted data, and returns the command if its value is now complete.
    pub(crate) fn take(&mut self, data: &Data<'_>, is_corrupt: bool) -> Result<Option<Transfer>, Fatal> {
        let fatal = |cause, at| Fatal::new(cause, at, &[]);
        let place = self.active.iter().position(|transfer| transfer.tag == data.tag);
        let place = place.ok_or_else(|| fatal(FatalCause::InvalidHeader, 10))?;
        let transfer = &mut self.active[place];
        if transfer.id != data.id {
            return Err(fatal(FatalCause::InvalidHeader, 8));
        }
        let end = transfer.value.len() + data.bytes.len();
        if data.offset as usize != transfer.value.len() || end > transfer.len_bytes || data.bytes.is_empty() {
            return Err(fatal(FatalCause::DataOutOfRange, 12));
        }
        if data.is_last != (end == transfer.len_bytes) {
            return Err(fatal(FatalCause::InvalidHeader, 1));
        }
        transfer.value.extend_from_slice(data.bytes);
        transfer.is_corrupt |= is_corrupt;
        if !data.is_last {
            return Ok(None);
        }
        let transfer = self.active.swap_remove(place);
        self.active_bytes -= transfer.len_bytes;
        Ok(Some(transfer))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transfer(id: u16, len_bytes: usize) -> Transfer {
        Transfer::new(id, Key::new(b"k").expect("it is short"), StoreIf::Always, len_bytes)
    }

    fn data(id: u16, tag: u16, offset: u32, bytes: &[u8], is_last: bool) -> Data<'_> {
        Data { id, tag, offset, is_last, is_success: false, bytes }
    }

    #[test]
    fn data_is_taken_once_in_order() {
        let mut transfers = Transfers::default();
        transfers.add(transfer(7, 6)).expect("it is the first");
        assert_eq!(transfers.add(transfer(7, 6)), Err(Status::COMMAND_ID_CONFLICT));
        let ready = transfers.next_ready().expect("there is space");
        assert_eq!((ready.id, ready.offset, ready.len_bytes), (7, 0, 6));
        let tag = ready.tag;
        assert_eq!(transfers.take(&data(7, tag, 0, b"abc", false), false), Ok(None));
        for (wrong, cause) in [
            (data(7, tag + 1, 3, b"def", true), FatalCause::InvalidHeader),
            (data(8, tag, 3, b"def", true), FatalCause::InvalidHeader),
            (data(7, tag, 0, b"abc", false), FatalCause::DataOutOfRange),
            (data(7, tag, 3, b"defg", true), FatalCause::DataOutOfRange),
            (data(7, tag, 3, b"def", false), FatalCause::InvalidHeader),
            (data(7, tag, 3, b"de", true), FatalCause::InvalidHeader),
            (data(7, tag, 3, b"", false), FatalCause::DataOutOfRange),
        ] {
            assert_eq!(transfers.take(&wrong, false).expect_err("it is wrong").cause, cause, "{wrong:?}");
        }
        let whole = transfers.take(&data(7, tag, 3, b"def", true), false).expect("it is right").expect("it is whole");
        assert_eq!(whole.value, b"abcdef");
        assert!(transfers.take(&data(7, tag, 3, b"def", true), false).is_err(), "it comes once more");
    }

    /// One value is in transfer while as many others arrive as there are tags.
    #[test]
    fn used_tag_is_not_reissued() {
        let mut transfers = Transfers::default();
        transfers.add(transfer(1, 2)).expect("it is the first");
        let slow = transfers.next_ready().expect("there is space");
        for _ in 0..=u16::MAX {
            transfers.add(transfer(2, 1)).expect("it is another");
            let tag = transfers.next_ready().expect("there is space").tag;
            assert!(transfers.take(&data(2, tag, 0, b"v", true), false).expect("it is right").is_some());
        }
        let whole =
            transfers.take(&data(1, slow.tag, 0, b"vv", true), false).expect("it is right").expect("it is whole");
        assert_eq!(whole.value, b"vv");
    }

    #[test]
    fn corrupt_value_is_received_completely() {
        let mut transfers = Transfers::default();
        transfers.add(transfer(7, 6)).expect("it is the first");
        let tag = transfers.next_ready().expect("there is space").tag;
        assert_eq!(transfers.take(&data(7, tag, 0, b"abc", false), true), Ok(None));
        let arrived = transfers.take(&data(7, tag, 3, b"def", true), false).expect("it is right").expect("it is all");
        assert!(arrived.is_corrupt);
    }

    #[test]
    fn values_on_their_way_are_bounded() {
        let mut transfers = Transfers::default();
        for id in 0..3 {
            transfers.add(transfer(id, limits::TRANSFER_BYTES_MAX / 2)).expect("it is another");
        }
        let first = transfers.next_ready().expect("there is space");
        assert!(transfers.next_ready().is_some());
        assert_eq!(transfers.next_ready(), None);
        let value = vec![1; limits::TRANSFER_BYTES_MAX / 2];
        transfers.take(&data(first.id, first.tag, 0, &value, true), false).expect("it is right").expect("it is whole");
        assert!(transfers.next_ready().is_some());
        assert_eq!(transfers.len(), 2);
    }
}
