//! A message to clients.

use resp::{Protocol, Reply};

use crate::clients::Kind;
use crate::clients::session::Session;

/// A message in its wire format. RESP2 and RESP3 differ only in the first byte.
pub(crate) struct ClientMessage {
    bytes: Vec<u8>,
    form: Form,
}

enum Form {
    /// A RESP3 push, which is an array in RESP2, for subscribers to this name.
    Published { kind: Kind, name: Vec<u8> },
    /// A RESP3 push that RESP2 clients do not receive. Exception: RESP2 clients with a subscription receive these
    /// bytes, if any.
    PushOfResp3 { for_subscribers: Vec<u8> },
    /// The same bytes in both versions, for monitors.
    Line,
}

/// The channel on which a RESP2 client receives invalidations of another client's tracked keys.
const INVALIDATIONS: &[u8] = b"__redis__:invalidate";

impl ClientMessage {
    /// Creates a message of these parts for the subscribers to a name.
    pub(crate) fn of_parts(kind: Kind, name: &[u8], parts: &[&[u8]]) -> ClientMessage {
        let bytes = written(Protocol::Resp3, |reply| {
            reply.push(parts.len());
            parts.iter().for_each(|part| reply.bulk(part));
        });
        ClientMessage { bytes, form: Form::Published { kind, name: name.to_vec() } }
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
            (Form::Published { .. }, Protocol::Resp2) => [b"*", &self.bytes[1..]],
            (Form::PushOfResp3 { for_subscribers }, Protocol::Resp2) if is_subscribed => [for_subscribers, &[]],
            (Form::PushOfResp3 { .. }, Protocol::Resp2) => [&[], &[]],
            _ => [&self.bytes, &[]],
        }
    }

    /// Returns whether the client still receives such messages. The reply that ends them may overtake a message, and
    /// the client would take the message for the reply to its next request.
    pub(crate) fn is_expected_by(&self, session: &Session) -> bool {
        match &self.form {
            Form::Published { kind, name } => session.subscriptions.of(*kind).contains(name),
            // Redirected messages have bytes for subscribers.
            Form::PushOfResp3 { for_subscribers } => !for_subscribers.is_empty() || session.tracks.is_some(),
            Form::Line => session.monitors,
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
