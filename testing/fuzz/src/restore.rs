//! Values as `DUMP` and `RESTORE` exchange them.

use std::cell::RefCell;

use redis_protocol::resp2::types::OwnedFrame;

use crate::served::Served;

/// Version 10, and 0 for no checksum, which a fuzzer could not guess.
const FOOTER: [u8; 10] = [10, 0, 0, 0, 0, 0, 0, 0, 0, 0];

thread_local! {
    static SERVED: RefCell<Served> = RefCell::new(Served::new("+@all"));
}

/// A restored value can be dumped and restored again without a change; any other input is refused.
pub fn restore(data: &[u8]) {
    SERVED.with_borrow_mut(|served| {
        served.call(&[b"RESTORE", b"raw", b"0", data, b"REPLACE"]);
        let body = [data, &FOOTER].concat();
        match served.call(&[b"RESTORE", b"k", b"0", &body, b"REPLACE"]) {
            OwnedFrame::Error(text) => assert_eq!(text, "ERR DUMP payload version or checksum are wrong"),
            reply => {
                assert_eq!(reply, OwnedFrame::SimpleString(b"OK".into()));
                let OwnedFrame::BulkString(dumped) = served.call(&[b"DUMP", b"k"]) else { panic!("it is there") };
                served.call(&[b"RESTORE", b"again", b"0", &dumped, b"REPLACE"]);
                assert_eq!(served.call(&[b"GET", b"again"]), served.call(&[b"GET", b"k"]));
            }
        }
    });
}
