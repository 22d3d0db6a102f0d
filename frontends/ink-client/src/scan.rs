//! Scans: pages of items. The first page is small, because many scans end in it; each is twice as large as the one
//! before, up to the size that the kernel fills without allocating memory.

use std::io;

use crate::abi::{BEHIND, ITEM_HEAD_BYTES, Op, Request, SCAN_BYTES_MAX};
use crate::{Ink, unless};

/// The size of the first page.
const FIRST_PAGE_BYTES: usize = 16 * 1024;
/// The largest size of later pages, unless an item needs more.
const PAGE_BYTES_MAX: usize = 64 * 1024;

/// An iterator over items in the order of their keys.
#[derive(Debug)]
pub struct Scan<'a> {
    ink: &'a Ink,
    page: Vec<u8>,
    /// The position in the page of the next item to return.
    at: usize,
    last: Vec<u8>,
    flags: u32,
    is_over: bool,
}

/// A key and its value.
pub type Item = (Vec<u8>, Vec<u8>);

impl<'a> Scan<'a> {
    pub(crate) fn new(ink: &'a Ink, from: &[u8]) -> Scan<'a> {
        Scan { ink, page: Vec::new(), at: 0, last: from.to_vec(), flags: 0, is_over: false }
    }

    /// Reads the page behind the last item. Returns false at the end.
    fn turn(&mut self) -> io::Result<bool> {
        self.at = 0;
        self.page.clear();
        let held = self.page.capacity();
        self.page.reserve_exact(if held < PAGE_BYTES_MAX { FIRST_PAGE_BYTES.max(2 * held) } else { held });
        loop {
            let mut request = Request::of_spare(&self.last, &mut self.page, self.flags);
            // SAFETY: the key is readable and the page writable, for their lengths.
            let done = unless(unsafe { self.ink.ask(Op::Scan, &mut request) }, &[libc::EMSGSIZE])?;
            let len = usize::try_from(request.result).map_err(io::Error::other)?;
            if done.is_some() {
                assert!(len <= self.page.capacity(), "an answer beyond its room");
                // SAFETY: the kernel has written this many bytes there.
                unsafe { self.page.set_len(len) };
                return Ok(request.count > 0);
            }
            if len <= self.page.capacity() || len > SCAN_BYTES_MAX {
                return Err(io::Error::from_raw_os_error(libc::EMSGSIZE));
            }
            self.page.reserve_exact(len);
        }
    }

    fn item(&mut self) -> Option<Item> {
        let page = &self.page[self.at..];
        let word = |at: usize| Some(u32::from_ne_bytes(*page.get(at..)?.first_chunk()?) as usize);
        let (key_len, value_len) = (word(0)?, word(4)?);
        let (key, rest) = page[ITEM_HEAD_BYTES..].split_at_checked(key_len)?;
        let value = rest.get(..value_len)?;
        self.at += ITEM_HEAD_BYTES + key_len + value_len;
        Some((key.to_vec(), value.to_vec()))
    }
}

impl Iterator for Scan<'_> {
    type Item = io::Result<Item>;

    fn next(&mut self) -> Option<io::Result<Item>> {
        if self.is_over {
            return None;
        }
        if self.at == self.page.len() {
            match self.turn() {
                Ok(true) => {}
                Ok(false) => self.is_over = true,
                Err(error) => {
                    self.is_over = true;
                    return Some(Err(error));
                }
            }
        }
        let item = self.item();
        if let Some((key, _)) = &item {
            self.last.clone_from(key);
            self.flags = BEHIND;
        }
        item.map(Ok)
    }
}
