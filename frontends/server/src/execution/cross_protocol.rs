//! Detection of HTTP requests, which come from a browser rather than from a Redis client.
//!
//! Any web site can make a visitor's browser send arbitrary bytes to a port of the visitor's own machine, as the body
//! of a request. The site does not need the response. The HTTP lines before the body would produce errors, and the
//! lines of the body would be executed. Like Redis, the server therefore closes a connection that speaks HTTP: at
//! `POST`, or at the header `Host:`, which every other browser request sends before its body. The check does not depend
//! on host names, so DNS rebinding does not defeat it.

use super::client::Client;

/// Words at the start of a line that no Redis client sends.
const WORDS: [&[u8]; 2] = [b"host:", b"post"];

/// Closes the connection if `name` is not a command but a word of HTTP; nothing after it is executed. This applies
/// before authentication and inside a transaction as well.
#[cold]
pub(crate) fn ends(name: &[u8], client: &mut Client<'_>) -> bool {
    let is_http = WORDS.iter().any(|word| word.eq_ignore_ascii_case(name));
    if is_http {
        client.session.closing = true;
        client.shared.administration.log.http_detected(&client.session.record.addr);
    }
    is_http
}
