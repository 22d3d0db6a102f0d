//! The commands: whatever a client sends is answered, and what the client reads is well formed.

use std::cell::RefCell;

use redis_protocol::resp2::types::OwnedFrame;
use redis_protocol::resp3::types::OwnedFrame as Frame3;

use crate::served::{Served, frames, frames_as_they_are, write_request};

/// What would make one input tell on the next, or take its time.
const RULES: &str = "-debug -config|set -acl|setuser -acl|deluser -shutdown -client|pause";

/// Commands whose answer is long, or that walk or copy the store. An input full of them takes a second, and finds no more than
/// one with a few.
const COSTLY: [&[u8]; 7] = [b"command", b"info", b"config", b"keys", b"scan", b"flush", b"save"];

/// How many of these an input may have: as many as one of the corpus.
const COSTLY_COUNT_MAX: usize = 8;

/// `HELLO 3` and its answer's end, so that one parser reads all replies.
const HELLO: &[u8] = b"HELLO 3\r\n";

thread_local! {
    static SERVED: RefCell<Served> = RefCell::new(Served::new(RULES));
}

/// A client that has said `HELLO 3` and sends `data` reads replies that are well formed. What it did is undone.
pub fn commands(data: &[u8]) {
    if COSTLY.iter().map(|word| mention_count(data, word)).sum::<usize>() > COSTLY_COUNT_MAX {
        return;
    }
    SERVED.with_borrow_mut(|served| {
        let replies = served.answer(&[HELLO, data].concat());
        // Who goes back to version 2, or gives up replies, is not followed.
        if !mentions(data, b"hello") && !mentions(data, b"reset") {
            assert!(!frames(&replies).is_empty());
        }
        assert_eq!(served.answer(b"ACL LOG RESET\nSLOWLOG RESET\n"), b"+OK\r\n".repeat(2));
        remove_all(served);
    });
}

/// Removes every key. `FLUSHALL` would take several times as long for so few.
fn remove_all(served: &mut Served) {
    let OwnedFrame::BulkString(info) = served.call(&[b"INFO", b"keyspace"]) else { panic!("it is a text") };
    let info = String::from_utf8(info).expect("it is a text");
    for db in info.lines().filter_map(|line| line.strip_prefix("db")?.split(':').next()) {
        let select = format!("SELECT {db}\r\n");
        let replies = served.answer(format!("HELLO 3\r\n{select}KEYS *\r\n").as_bytes());
        let Some(Frame3::Array { data, .. }) = frames_as_they_are(&replies).pop() else { panic!("it is a list") };
        let mut request = select.into_bytes();
        for key in data {
            let Frame3::BlobString { data: key, .. } = key else { panic!("it is a key") };
            write_request(&mut request, &[b"DEL", &key]);
        }
        served.answer(&request);
    }
}

fn mentions(data: &[u8], word: &[u8]) -> bool {
    mention_count(data, word) > 0
}

fn mention_count(data: &[u8], word: &[u8]) -> usize {
    data.windows(word.len()).filter(|part| part.eq_ignore_ascii_case(word)).count()
}
