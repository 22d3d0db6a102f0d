//! The commands: whatever a client sends, it is answered, and what it reads is well formed.

use std::cell::RefCell;

use crate::served::{Served, frames};

/// What would make one input tell on the next, or take its time.
const RULES: &str = "-debug -config|set -acl|setuser -acl|deluser -shutdown -client|pause";

/// `HELLO 3` and its answer's end, so that one parser reads all replies.
const HELLO: &[u8] = b"HELLO 3\r\n";

thread_local! {
    static SERVED: RefCell<Served> = RefCell::new(Served::new(RULES));
}

/// A client that has said `HELLO 3` and sends `data` reads replies that are well formed. What it did is undone.
pub fn commands(data: &[u8]) {
    SERVED.with_borrow_mut(|served| {
        let replies = served.answer(&[HELLO, data].concat());
        // Who goes back to version 2, or gives up replies, is not followed.
        if !mentions(data, b"hello") && !mentions(data, b"reset") {
            assert!(!frames(&replies).is_empty());
        }
        assert_eq!(served.answer(b"FLUSHALL\nACL LOG RESET\nSLOWLOG RESET\n"), b"+OK\r\n".repeat(3));
    });
}

fn mentions(data: &[u8], word: &[u8]) -> bool {
    data.windows(word.len()).any(|part| part.eq_ignore_ascii_case(word))
}
