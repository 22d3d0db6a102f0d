//! Scans: pages of items, each as large as the kernel fills at once.

use std::io;

use crate::abi::{BEHIND, ITEM_HEAD_BYTES, Op, Request, SCAN_BYTES_MAX};
use crate::{Ink, unless};

/// A page's room; one that an item does not fit is doubled for it.
const PAGE_BYTES: usize = 64 * 1024;

/// Items in the order of their keys.
#[derive(Debug)]
pub struct Scan<'a> {
    ink: &'a Ink,
    page: Vec<u8>,
    /// What of the page was not given out yet.
    at: usize,
    end: usize,
    last: Vec<u8>,
    flags: u32,
    is_over: bool,
}

/// A key and its value.
pub type Item = (Vec<u8>, Vec<u8>);

impl<'a> Scan<'a> {
    pub(crate) fn new(ink: &'a Ink, from: &[u8]) -> Scan<'a> {
        Scan { ink, page: vec![0; PAGE_BYTES], at: 0, end: 0, last: from.to_vec(), flags: 0, is_over: false }
    }

    /// Asks for the page behind the last item; false at the end.
    fn turn(&mut self) -> io::Result<bool> {
        loop {
            let mut request = Request::of_room(&self.last, &mut self.page, self.flags);
            // SAFETY: the key is ours to read, and the page ours to write, as long as they say.
            let done = unless(unsafe { self.ink.ask(Op::Scan, &mut request) }, &[libc::EMSGSIZE])?;
            let len = usize::try_from(request.result).map_err(io::Error::other)?;
            if done.is_some() {
                (self.at, self.end) = (0, len);
                return Ok(request.count > 0);
            }
            if len <= self.page.len() || len > SCAN_BYTES_MAX {
                return Err(io::Error::from_raw_os_error(libc::EMSGSIZE));
            }
            self.page.resize(len, 0);
        }
    }

    fn item(&mut self) -> Option<Item> {
        let page = &self.page[self.at..self.end];
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
        if self.at == self.end {
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
