//! The rules of users.

use std::cell::RefCell;

use redis_protocol::resp2::types::OwnedFrame;

use crate::served::Served;

thread_local! {
    static SERVED: RefCell<Served> = RefCell::new(Served::new("+@all"));
}

/// A user that is created by some rules is listed with rules that create the same user; refused rules change nothing.
/// Each line of `data` is a rule.
pub fn acl_rules(data: &[u8]) {
    let rules: Vec<&[u8]> = data.split(|byte| *byte == b'\n').collect();
    SERVED.with_borrow_mut(|served| {
        served.call(&[b"ACL", b"DELUSER", b"ada", b"bob"]);
        let reply = served.call(&[&[&b"ACL"[..], b"SETUSER", b"ada"], &rules[..]].concat());
        served.call(&[b"ACL", b"GETUSER", b"ada"]);
        let listed = line_of(served, "user ada ");
        if let OwnedFrame::Error(_) = reply {
            assert_eq!(listed, None, "a user was made with rules that were refused");
            return;
        }
        let listed = listed.expect("the user is there");
        let again: Vec<&[u8]> = listed.split(' ').map(str::as_bytes).collect();
        let reply = served.call(&[&[&b"ACL"[..], b"SETUSER", b"bob"], &again[..]].concat());
        assert_eq!(reply, OwnedFrame::SimpleString(b"OK".into()), "{listed}");
        assert_eq!(line_of(served, "user bob "), Some(listed));
    });
}

/// Returns the rules of the user whose line begins like this.
fn line_of(served: &mut Served, start: &str) -> Option<String> {
    let OwnedFrame::Array(lines) = served.call(&[b"ACL", b"LIST"]) else { panic!("it is a list") };
    lines.into_iter().find_map(|line| match line {
        OwnedFrame::BulkString(line) => {
            String::from_utf8(line).expect("lines are texts").strip_prefix(start).map(str::to_owned)
        }
        other => panic!("{other:?} is not a line"),
    })
}
