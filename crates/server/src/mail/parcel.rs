//! A message to clients.

use resp::{Protocol, Reply};

/// A message, as it is sent. Both versions of the protocol write it alike, except for its first byte.
pub(crate) struct Parcel {
    bytes: Vec<u8>,
    form: Form,
}

#[derive(PartialEq, Eq)]
enum Form {
    /// A push of RESP3, which is an array in RESP2.
    Push,
    /// A push that clients of RESP2 do not get; those that subscribe to something get these bytes, if there are any.
    PushOfResp3 { for_subscribers: Vec<u8> },
    /// The same in both.
    Line,
}

/// The channel by which a client of RESP2 hears of another client's tracked keys.
const INVALIDATIONS: &[u8] = b"__redis__:invalidate";

impl Parcel {
    /// A message of these parts.
    pub(crate) fn of_parts(parts: &[&[u8]]) -> Parcel {
        let bytes = written(Protocol::Resp3, |reply| {
            reply.push(parts.len());
            parts.iter().for_each(|part| reply.bulk(part));
        });
        Parcel { bytes, form: Form::Push }
    }

    /// These keys were changed, or everything was. A client to which this is redirected may speak RESP2, if it subscribes.
    pub(crate) fn of_invalidation(keys: Option<&[&[u8]]>, is_redirected: bool) -> Parcel {
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
        Parcel { bytes, form: Form::PushOfResp3 { for_subscribers } }
    }

    /// The client with this number, to which messages go, is gone.
    pub(crate) fn of_broken_redirection(client_id: u64) -> Parcel {
        let bytes = written(Protocol::Resp3, |reply| {
            reply.push(2);
            reply.bulk(b"tracking-redir-broken");
            reply.integer(client_id as i64);
        });
        Parcel { bytes, form: Form::PushOfResp3 { for_subscribers: Vec::new() } }
    }

    pub(crate) fn of_line(line: String) -> Parcel {
        Parcel { bytes: line.into_bytes(), form: Form::Line }
    }

    /// The bytes for a client of this version, which may subscribe to something.
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
