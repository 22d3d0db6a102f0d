//! The commands: every input of a client is answered, and the replies are well formed.

use std::cell::RefCell;

use redis_protocol::resp2::types::OwnedFrame;
use redis_protocol::resp3::types::OwnedFrame as Frame3;

use crate::served::{Served, frames, frames_as_they_are, write_request};

/// Excludes commands by which one input would affect the next or be slow. Scripts, which may be endless, have their own
/// target.
const RULES: &str =
    "-eval -evalsha -eval_ro -evalsha_ro -debug -config|set -acl|setuser -acl|deluser -shutdown -client|pause";

/// Commands with long replies, or that walk or copy the store. An input full of them takes a second, and finds no more
/// than one with a few.
const COSTLY: [&[u8]; 7] = [b"command", b"info", b"config", b"keys", b"scan", b"flush", b"save"];

/// The maximum number of these in an input: as many as in one of the corpus.
const COSTLY_COUNT_MAX: usize = 8;

/// `HELLO 3`, so that one parser reads all replies.
const HELLO: &[u8] = b"HELLO 3\r\n";

thread_local! {
    static SERVED: RefCell<Served> = RefCell::new(Served::new(RULES));
}

/// A client that has sent `HELLO 3` and sends `data` gets well-formed replies. The changes are undone.
pub fn commands(data: &[u8]) {
    if COSTLY.iter().map(|word| mention_count(data, word)).sum::<usize>() > COSTLY_COUNT_MAX {
        return;
    }
    SERVED.with_borrow_mut(|served| {
        let replies = served.answer(&[HELLO, data].concat());
        // A client that returns to version 2 or turns replies off is not checked.
        if !mentions(data, b"hello") && !mentions(data, b"reset") {
            assert!(!frames(&replies).is_empty());
        }
        assert_eq!(served.answer(b"ACL LOG RESET\nSLOWLOG RESET\n"), b"+OK\r\n".repeat(2));
        remove_all(served);
    });
}

/// Removes every key. `FLUSHALL` would take several times as long for so few keys.
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
