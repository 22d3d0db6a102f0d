//! Requests of HTTP, which come from a browser and not from a client.
//!
//! A page of any site may have a reader's browser send what it likes to a port of that reader's own host, as the body of a
//! request; it does not see the answer, and needs none. Lines of HTTP that precede the body would be answered with errors,
//! and the lines of the body executed. So a connection ends where it begins to speak HTTP, as in Redis: at `POST`, or at the
//! header `Host:`, which every other request of a browser has before the body, whatever its method. Names of hosts do not
//! matter, so a name that was made to resolve to this host (DNS rebinding) opens nothing either.

use crate::clients::session::Session;
use crate::shared::Shared;

/// Words at the beginning of a line that no client sends.
const WORDS: [&[u8]; 2] = [b"host:", b"post"];

/// Ends the connection if `name`, which is no command's, is a word of HTTP; nothing behind it is executed. It is known before
/// a client has said who it is, and within a transaction.
#[cold]
pub(crate) fn ends(name: &[u8], session: &mut Session, shared: &Shared) -> bool {
    let is_http = WORDS.iter().any(|word| word.eq_ignore_ascii_case(name));
    if is_http {
        session.closing = true;
        shared.administration.log.spoke_http(&session.record.addr);
    }
    is_http
}
