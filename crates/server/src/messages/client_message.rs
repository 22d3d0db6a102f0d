//! A message to clients.

use resp::{Protocol, Reply};

/// A message in its wire format. RESP2 and RESP3 differ only in the first byte.
pub(crate) struct ClientMessage {
    bytes: Vec<u8>,
    form: Form,
}

#[derive(PartialEq, Eq)]
enum Form {
    /// A RESP3 push, which is an array in RESP2.
    Push,
    /// A RESP3 push that RESP2 clients do not receive. Exception: RESP2 clients with a subscription receive these
    /// bytes, if any.
    PushOfResp3 { for_subscribers: Vec<u8> },
    /// The same bytes in both versions.
    Line,
}

/// The channel on which a RESP2 client receives invalidations of another client's tracked keys.
const INVALIDATIONS: &[u8] = b"__redis__:invalidate";

impl ClientMessage {
    /// Creates a message of these parts.
    pub(crate) fn of_parts(parts: &[&[u8]]) -> ClientMessage {
        let bytes = written(Protocol::Resp3, |reply| {
            reply.push(parts.len());
            parts.iter().for_each(|part| reply.bulk(part));
        });
        ClientMessage { bytes, form: Form::Push }
    }

    /// Creates an invalidation of these keys, or of all keys. A redirected invalidation may go to a RESP2 client that
    /// subscribes.
    pub(crate) fn of_invalidation(keys: Option<&[&[u8]]>, is_redirected: bool) -> ClientMessage {
        let bytes = written(Protocol::Resp3, |reply| {
            reply.push(2);
            reply.bulk(b"invalidate");
            write_keys(reply, keys);
        });
        let for_subscribers = written(Protocol::Resp2, |reply| {
            if is_redirected {
                reply.array(3);
                reply.bulk(b"message");
                reply.bulk(INVALIDATIONS);
                write_keys(reply, keys);
            }
        });
        ClientMessage { bytes, form: Form::PushOfResp3 { for_subscribers } }
    }

    /// Creates the message that the redirection target `client_id` is gone.
    pub(crate) fn of_broken_redirection(client_id: u64) -> ClientMessage {
        let bytes = written(Protocol::Resp3, |reply| {
            reply.push(2);
            reply.bulk(b"tracking-redir-broken");
            reply.integer(client_id as i64);
        });
        ClientMessage { bytes, form: Form::PushOfResp3 { for_subscribers: Vec::new() } }
    }

    pub(crate) fn of_line(line: String) -> ClientMessage {
        ClientMessage { bytes: line.into_bytes(), form: Form::Line }
    }

    /// Returns the bytes for a client of this protocol version.
    pub(crate) fn parts(&self, protocol: Protocol, is_subscribed: bool) -> [&[u8]; 2] {
        match (&self.form, protocol) {
            (Form::Push, Protocol::Resp2) => [b"*", &self.bytes[1..]],
            (Form::PushOfResp3 { for_subscribers }, Protocol::Resp2) if is_subscribed => [for_subscribers, &[]],
            (Form::PushOfResp3 { .. }, Protocol::Resp2) => [&[], &[]],
            _ => [&self.bytes, &[]],
        }
    }

    pub(crate) fn len_bytes(&self) -> usize {
        self.bytes.len()
    }
}

fn written(protocol: Protocol, write: impl FnOnce(&mut Reply<'_>)) -> Vec<u8> {
    let mut bytes = Vec::new();
    write(&mut Reply::new(&mut bytes, protocol));
    bytes
}

fn write_keys(reply: &mut Reply<'_>, keys: Option<&[&[u8]]>) {
    match keys {
        Some(keys) => {
            reply.array(keys.len());
            keys.iter().for_each(|key| reply.bulk(key));
        }
        None => reply.null_bulk(),
    }
}
