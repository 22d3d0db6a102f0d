//! A message to clients.

use resp::{Protocol, Reply};

/// A message, as it is sent. Both versions of the protocol write it alike, but for its first byte.
pub(crate) struct Parcel {
    bytes: Vec<u8>,
    form: Form,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// A push of RESP3, which is an array in RESP2.
    Push,
    /// A push that clients of RESP2 do not get.
    PushOfResp3,
    /// The same in both.
    Line,
}

impl Parcel {
    /// A message of these parts.
    pub(crate) fn of_parts(parts: &[&[u8]]) -> Parcel {
        let mut bytes = Vec::new();
        let mut reply = Reply::new(&mut bytes, Protocol::Resp3);
        reply.push(parts.len());
        parts.iter().for_each(|part| reply.bulk(part));
        Parcel { bytes, form: Form::Push }
    }

    /// A push that `write` writes; clients of RESP2 have no place for it.
    pub(crate) fn of_resp3(write: impl FnOnce(&mut Reply<'_>)) -> Parcel {
        let mut bytes = Vec::new();
        write(&mut Reply::new(&mut bytes, Protocol::Resp3));
        Parcel { bytes, form: Form::PushOfResp3 }
    }

    pub(crate) fn of_line(line: String) -> Parcel {
        Parcel { bytes: line.into_bytes(), form: Form::Line }
    }

    /// What a client of this version gets.
    pub(crate) fn parts(&self, protocol: Protocol) -> [&[u8]; 2] {
        match (self.form, protocol) {
            (Form::Push, Protocol::Resp2) => [b"*", &self.bytes[1..]],
            (Form::PushOfResp3, Protocol::Resp2) => [&[], &[]],
            _ => [&self.bytes, &[]],
        }
    }

    pub(crate) fn len_bytes(&self) -> usize {
        self.bytes.len()
    }
}
