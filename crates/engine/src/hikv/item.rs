//! Writing and reading items.
//!
//! An item is written whole, past the cache, into space that nobody else sees, and is never changed once an entry names
//! it.

use std::io::{Chain, Cursor, Read, Take};

use heap::PlaceKind;
use index::Position;
use pmem::{Canary, Checksum, Medium, Offset};

use super::layout::{EXPIRY_BYTES, FLAG_EXPIRY, HEADER_BYTES, Header};
use crate::{Error, Expiry, Version};

/// A large value is written, and read from its source, in pieces of this length: a multiple of 16, within the L2 cache.
const PIECE_BYTES: usize = 64 * 1024;
/// Lines of an item that are asked for before its header has told how long it is.
const PREFETCHED_LINE_COUNT_MAX: u64 = 16;

/// An item as it lies in the region.
#[derive(Clone, Copy, Debug)]
pub(super) struct Item<'a> {
    pub(super) header: Header,
    pub(super) expiry: Expiry,
    pub(super) key: &'a [u8],
    pub(super) value: &'a [u8],
}

impl<'a> Item<'a> {
    /// Reads the item that `position` names.
    ///
    /// # Errors
    /// [`Error::Corrupt`] or [`Error::Medium`] if no item can lie there.
    ///
    /// # Safety
    /// `position` was found in the index while the caller was pinned, or under its bucket's lock, and `'a` ends before
    /// the pin or lock does: so nobody stores to the item.
    #[inline(always)]
    pub(super) unsafe fn read<M: Medium>(medium: &'a M, position: Position) -> Result<Item<'a>, Error> {
        // SAFETY: the caller's promise.
        unsafe { Item::read_within(medium, position.offset(), room_bytes(medium, position)) }
    }

    /// Reads the item at `at`, which has `room_bytes` at the most.
    ///
    /// # Errors
    /// As for [`Item::read`].
    ///
    /// # Safety
    /// Nobody stores to the item while it is used.
    #[inline(always)]
    pub(super) unsafe fn read_within<M: Medium>(medium: &'a M, at: Offset, room_bytes: u64) -> Result<Item<'a>, Error> {
        // SAFETY: the caller's promise covers the header.
        let head = unsafe { medium.item(at.span(HEADER_BYTES as u64)) }?;
        let header = Header::from_bytes(*head.first_chunk().expect("the span has that length"));
        if header.flags & !FLAG_EXPIRY != 0 || header.item_bytes() > room_bytes {
            return Err(Error::Corrupt { offset: at.0, what: "an item's header is damaged" });
        }
        // SAFETY: and the whole item.
        let bytes = unsafe { medium.item(at.span(header.item_bytes())) }?;
        let (start, body) = bytes.split_at(header.key_start());
        let (key, value) = body.split_at(usize::from(header.key_bytes));
        Ok(Item { header, expiry: expiry_of(&start[HEADER_BYTES..]), key, value })
    }

    /// True if the checksum fits.
    pub(super) fn is_whole(&self) -> bool {
        let start = checksum_start(&self.header, self.expiry);
        start.update(self.key).update(self.value).value() == self.header.checksum
    }

    pub(super) fn version(&self, position: Position) -> Version {
        Version { item: position.item().word(), checksum: self.header.checksum }
    }
}

/// The most an item at `position` can have.
#[inline(always)]
fn room_bytes<M: Medium>(medium: &M, position: Position) -> u64 {
    match position.place().map(|place| place.kind) {
        Some(PlaceKind::Slot(class)) => class.bytes(),
        Some(PlaceKind::Extent) => medium.len_bytes() - position.offset().0,
        _ => 0,
    }
}

/// Asks the cache for all lines of a small item: its length is known from the size class long before its header arrives.
#[inline(always)]
pub(super) fn prefetch<M: Medium>(medium: &M, position: Position) {
    let Some(place) = position.place() else { return };
    let PlaceKind::Slot(class) = place.kind else {
        medium.prefetch(place.offset);
        return;
    };
    for line in pmem::lines(place.offset.span(class.bytes())).take(PREFETCHED_LINE_COUNT_MAX as usize) {
        medium.prefetch(line);
    }
}

/// The expiry that stands between header and key, if one does.
#[inline(always)]
fn expiry_of(bytes: &[u8]) -> Expiry {
    bytes.first_chunk().map_or(Expiry::NEVER, |&bytes| Expiry::at_ms(u64::from_le_bytes(bytes)))
}

/// The checksum of what comes before the key.
#[inline(always)]
fn checksum_start(header: &Header, expiry: Expiry) -> Checksum {
    let start = header.checksum_start();
    if header.flags == 0 { start } else { start.update(&expiry.ms().to_le_bytes()) }
}

/// An item that is to be written.
#[derive(Clone, Copy, Debug)]
pub(super) struct NewItem<'a> {
    pub(super) key: &'a [u8],
    pub(super) value: &'a [u8],
    pub(super) expiry: Expiry,
}

impl NewItem<'_> {
    #[inline(always)]
    fn header(&self, epoch: u32) -> Header {
        Header::new(self.key.len(), self.value.len() as u64, self.expiry, epoch)
    }

    #[inline(always)]
    pub(super) fn item_bytes(&self) -> u64 {
        self.header(0).item_bytes()
    }

    /// Writes the item, of this snapshot epoch, and flushes it.
    ///
    /// # Safety
    /// The caller reserved room for it at `at`.
    #[inline]
    pub(super) unsafe fn write<M: Medium>(&self, medium: &M, at: Offset, epoch: u32) {
        let header = self.header(epoch);
        let checksum = checksum_start(&header, self.expiry).update(self.key).update(self.value).value();
        let mut head = [0; HEADER_BYTES + EXPIRY_BYTES];
        head[..HEADER_BYTES].copy_from_slice(&Header { checksum, ..header }.to_bytes());
        head[HEADER_BYTES..].copy_from_slice(&self.expiry.ms().to_le_bytes());
        let parts = [&head[..header.key_start()], self.key, self.value];
        if medium.breaks(Canary::ItemNotFlushed) {
            // SAFETY: the caller's promise.
            return unsafe { medium.write(at, &parts.concat()) };
        }
        // SAFETY: the caller's promise; slots are multiples of 16 bytes, and so reach as far as the padding.
        unsafe { medium.stream(at, &parts) }
    }
}

/// Writes the bytes of an item, as they are, to another place, and flushes them.
///
/// # Errors
/// [`Error::Medium`] if the item does not lie in the region.
///
/// # Safety
/// As for [`Item::read`], and the caller reserved room for the item at `to`.
pub(super) unsafe fn copy<M: Medium>(medium: &M, to: Offset, from: Position, item: &Item<'_>) -> Result<(), Error> {
    // SAFETY: the caller's promise.
    let bytes = unsafe { medium.item(from.offset().span(item.header.item_bytes())) }?;
    // SAFETY: the caller's promise; slots are multiples of 16 bytes, and so reach as far as the padding.
    unsafe { medium.stream(to, &[bytes]) };
    Ok(())
}

/// Gives an item another snapshot epoch, and flushes its header.
///
/// # Errors
/// As for [`Item::read`].
///
/// # Safety
/// The caller wrote the item at `position`, and nobody else knows it.
pub(super) unsafe fn restamp<M: Medium>(medium: &M, position: Position, epoch: u32) -> Result<(), Error> {
    // SAFETY: the caller's promise.
    let item = unsafe { Item::read(medium, position) }?;
    let header = Header { epoch, ..item.header };
    let checksum = checksum_start(&header, item.expiry).update(item.key).update(item.value).value();
    let bytes = Header { checksum, ..header }.to_bytes();
    // SAFETY: the caller's promise; what is read of the item begins behind the header, and is not stored to.
    unsafe { medium.stream(position.offset(), &[&bytes]) };
    Ok(())
}

/// An item whose value comes from a source, in pieces.
pub(super) struct Streamed<'a> {
    header: Header,
    /// Expiry, key and value, as far as they are still to be read.
    body: Chain<Cursor<Vec<u8>>, Take<&'a mut dyn Read>>,
    unread_bytes: u64,
    piece: Vec<u8>,
}

impl<'a> Streamed<'a> {
    /// Reads the first piece, so that a source that holds nothing takes no room.
    ///
    /// # Errors
    /// [`Error::Source`].
    pub(super) fn start(
        key: &[u8],
        expiry: Expiry,
        value_bytes: u64,
        epoch: u32,
        source: &'a mut dyn Read,
    ) -> Result<Streamed<'a>, Error> {
        let header = Header::new(key.len(), value_bytes, expiry, epoch);
        let start = [&expiry.ms().to_le_bytes()[..header.key_start() - HEADER_BYTES], key].concat();
        let unread_bytes = start.len() as u64 + value_bytes;
        let body = Cursor::new(start).chain(source.take(value_bytes));
        let mut item = Streamed { header, body, unread_bytes, piece: Vec::new() };
        item.read_piece()?;
        Ok(item)
    }

    pub(super) fn item_bytes(&self) -> u64 {
        self.header.item_bytes()
    }

    /// Writes the item and flushes it: the header last, when the checksum is known.
    ///
    /// # Errors
    /// [`Error::Source`].
    ///
    /// # Safety
    /// The caller reserved room for it at `at`.
    pub(super) unsafe fn write<M: Medium>(mut self, medium: &M, at: Offset) -> Result<(), Error> {
        let (mut checksum, mut end) = (self.header.checksum_start(), at.plus(HEADER_BYTES as u64));
        while !self.piece.is_empty() {
            checksum = checksum.update(&self.piece);
            // SAFETY: the caller's promise; every piece but the last is a multiple of 16 bytes.
            unsafe { medium.stream(end, &[&self.piece]) };
            end = end.plus(self.piece.len() as u64);
            self.read_piece()?;
        }
        let header = Header { checksum: checksum.value(), ..self.header };
        // SAFETY: the caller's promise.
        unsafe { medium.stream(at, &[&header.to_bytes()]) };
        Ok(())
    }

    fn read_piece(&mut self) -> Result<(), Error> {
        self.piece.resize(self.unread_bytes.min(PIECE_BYTES as u64) as usize, 0);
        self.body.read_exact(&mut self.piece).map_err(Error::Source)?;
        self.unread_bytes -= self.piece.len() as u64;
        Ok(())
    }
}

const _: () = assert!(PIECE_BYTES.is_multiple_of(16) && HEADER_BYTES.is_multiple_of(16));
