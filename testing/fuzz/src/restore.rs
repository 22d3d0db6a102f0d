//! Values as `DUMP` and `RESTORE` exchange them.

use std::cell::RefCell;

use redis_protocol::resp2::types::OwnedFrame;

use crate::served::Served;

thread_local! {
    static SERVED: RefCell<Served> = RefCell::new(Served::new("+@all"));
}

/// A restored value is dumped, and that dump restored, without a change. Any other input is refused and leaves nothing.
///
/// The input has no version and checksum, which a fuzzer could not guess.
pub fn restore(data: &[u8]) {
    SERVED.with_borrow_mut(|served| {
        served.call(&[b"RESTORE", b"raw", b"0", data, b"REPLACE"]);
        served.call(&[b"DEL", b"k"]);
        match served.call(&[b"RESTORE", b"k", b"0", &rdb::sealed(data.to_vec())]) {
            OwnedFrame::Error(text) => {
                let known = ["ERR Bad data format", "ERR DUMP payload version", "ERR the field or member has "];
                assert!(known.iter().any(|start| text.starts_with(start)), "{text}");
                assert_eq!(served.call(&[b"EXISTS", b"k"]), OwnedFrame::Integer(0));
            }
            reply => {
                assert_eq!(reply, OwnedFrame::SimpleString(b"OK".into()));
                let OwnedFrame::BulkString(dumped) = served.call(&[b"DUMP", b"k"]) else { panic!("it is there") };
                let again = served.call(&[b"RESTORE", b"again", b"0", &dumped, b"REPLACE"]);
                assert_eq!(again, OwnedFrame::SimpleString(b"OK".into()));
                assert_eq!(served.call(&[b"DUMP", b"again"]), OwnedFrame::BulkString(dumped));
                assert_eq!(served.call(&[b"TYPE", b"again"]), served.call(&[b"TYPE", b"k"]));
            }
        }
    });
}
