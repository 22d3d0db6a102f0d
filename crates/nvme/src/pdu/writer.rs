//! From PDUs to bytes.

use super::digest::digest_of;
use super::header::{DATA_DIGEST, HEADER_DIGEST, Header, Kind, LAST, SUCCESS};
use super::{Data, Digests, Fatal, InitialRequest, InitialResponse, Ready, Side};
use crate::bytes::put;
use crate::{Command, Completion};

/// Writes the PDUs of one side.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Writer {
    /// The side that reads it.
    pub reader: Side,
    /// What the two have agreed on.
    pub digests: Digests,
    /// The alignment of data that the reader wants, in dwords, less one.
    pub alignment: u8,
}

impl Writer {
    /// Appends a host's first PDU.
    pub fn initial_request(&self, out: &mut Vec<u8>, request: &InitialRequest) {
        let mut own = [0; 8];
        put(&mut own, 0, &request.version.to_le_bytes());
        own[2] = request.alignment;
        own[3] = request.digests.bits();
        put(&mut own, 4, &request.ready_count_max.to_le_bytes());
        self.pdu(out, Kind::InitialRequest, 0, &own, &[]);
    }

    /// Appends a controller's first PDU.
    pub fn initial_response(&self, out: &mut Vec<u8>, response: &InitialResponse) {
        let mut own = [0; 8];
        put(&mut own, 0, &response.version.to_le_bytes());
        own[2] = response.alignment;
        own[3] = response.digests.bits();
        put(&mut own, 4, &response.data_bytes_max.to_le_bytes());
        self.pdu(out, Kind::InitialResponse, 0, &own, &[]);
    }

    /// Appends the PDU that ends a connection.
    pub fn terminate(&self, out: &mut Vec<u8>, fatal: &Fatal) {
        let kind = match self.reader {
            Side::Host => Kind::TerminateByController,
            Side::Controller => Kind::TerminateByHost,
        };
        let header_bytes = kind.header_bytes();
        let len_bytes = header_bytes + fatal.header.len();
        let header = Header { kind: kind as u8, flags: 0, header_bytes, data_start: 0, len_bytes };
        let start = out.len();
        out.extend_from_slice(&header.to_bytes());
        out.extend_from_slice(&(fatal.cause as u16).to_le_bytes());
        out.extend_from_slice(&fatal.information.to_le_bytes());
        out.resize(start + header_bytes, 0);
        out.extend_from_slice(&fatal.header);
    }

    /// Appends a command, with data in its capsule.
    pub fn command(&self, out: &mut Vec<u8>, command: &Command, data: &[u8]) {
        self.pdu(out, Kind::Command, 0, &command.0, data);
    }

    /// Appends a completion.
    pub fn completion(&self, out: &mut Vec<u8>, completion: &Completion) {
        self.pdu(out, Kind::Completion, 0, &completion.encode(), &[]);
    }

    /// Appends a part of a command's data.
    pub fn data(&self, out: &mut Vec<u8>, data: &Data<'_>) {
        let kind = match self.reader {
            Side::Host => Kind::DataToHost,
            Side::Controller => Kind::DataToController,
        };
        let mut own = [0; 16];
        put(&mut own, 0, &data.id.to_le_bytes());
        put(&mut own, 2, &data.tag.to_le_bytes());
        put(&mut own, 4, &data.offset.to_le_bytes());
        put(&mut own, 8, &(data.bytes.len() as u32).to_le_bytes());
        let flags = if data.is_last { LAST } else { 0 } | if data.is_success { SUCCESS } else { 0 };
        self.pdu(out, kind, flags, &own, data.bytes);
    }

    /// Appends a request for data.
    pub fn ready(&self, out: &mut Vec<u8>, ready: &Ready) {
        let mut own = [0; 16];
        put(&mut own, 0, &ready.id.to_le_bytes());
        put(&mut own, 2, &ready.tag.to_le_bytes());
        put(&mut own, 4, &ready.offset.to_le_bytes());
        put(&mut own, 8, &ready.len_bytes.to_le_bytes());
        self.pdu(out, Kind::Ready, 0, &own, &[]);
    }

    /// Appends a PDU, whose header has `own` behind what all have, and zeros behind that.
    #[inline]
    fn pdu<const OWN: usize>(&self, out: &mut Vec<u8>, kind: Kind, flags: u8, own: &[u8; OWN], data: &[u8]) {
        let digests = if kind.has_digests() { self.digests } else { Digests::default() };
        let header_bytes = kind.header_bytes();
        let (data_start, data_end) = if data.is_empty() {
            (0, header_bytes + digests.header_bytes())
        } else {
            let alignment_bytes = 4 * (usize::from(self.alignment) + 1);
            let start = (header_bytes + digests.header_bytes()).next_multiple_of(alignment_bytes);
            (start, start + data.len() + digests.data_bytes())
        };
        let digest_flags =
            (u8::from(digests.header) * HEADER_DIGEST) | (u8::from(digests.data && !data.is_empty()) * DATA_DIGEST);
        let header =
            Header { kind: kind as u8, flags: flags | digest_flags, header_bytes, data_start, len_bytes: data_end };
        let start = out.len();
        out.reserve(data_end);
        out.extend_from_slice(&header.to_bytes());
        out.extend_from_slice(own);
        out.resize(start + header_bytes, 0);
        if digests.header {
            let digest = digest_of(&out[start..]);
            out.extend_from_slice(&digest);
        }
        if !data.is_empty() {
            out.resize(start + data_start, 0);
            out.extend_from_slice(data);
            if digests.data {
                out.extend_from_slice(&digest_of(data));
            }
        }
    }
}
