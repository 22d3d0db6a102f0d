//! Encoding PDUs.

use super::digest::digest_of;
use super::header::{COMMON_BYTES, DATA_DIGEST, HEADER_DIGEST, Header, Kind, LAST, SUCCESS};
use super::{Data, Digests, Fatal, InitialRequest, InitialResponse, Ready, Side};
use crate::bytes::{pair, put};
use crate::{Command, Completion};

/// The longest header, with its digest.
const HEAD_BYTES_MAX: usize = 128;
/// Padding between a header and data: at least the largest alignment that can be requested.
static PADDING: [u8; 4 << u8::BITS] = [0; 4 << u8::BITS];

/// A destination of PDUs, each of which is appended in a few pieces.
pub trait Sink {
    /// Appends bytes.
    fn put(&mut self, bytes: &[u8]);
}

impl Sink for Vec<u8> {
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

/// Writes the PDUs of one side.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Writer {
    /// The reading side.
    pub reader: Side,
    /// The negotiated digests.
    pub digests: Digests,
    /// The alignment of data that the reader requires, in dwords, minus one.
    pub alignment: u8,
}

impl Writer {
    /// Appends a host's first PDU.
    pub fn initial_request(&self, out: &mut impl Sink, request: &InitialRequest) {
        let mut own = [0; 8];
        put(&mut own, 0, &request.version.to_le_bytes());
        own[2] = request.alignment;
        own[3] = request.digests.bits();
        put(&mut own, 4, &request.ready_count_max.to_le_bytes());
        self.pdu(out, Kind::InitialRequest, 0, &own, &[]);
    }

    /// Appends a controller's first PDU.
    pub fn initial_response(&self, out: &mut impl Sink, response: &InitialResponse) {
        let mut own = [0; 8];
        put(&mut own, 0, &response.version.to_le_bytes());
        own[2] = response.alignment;
        own[3] = response.digests.bits();
        put(&mut own, 4, &response.data_bytes_max.to_le_bytes());
        self.pdu(out, Kind::InitialResponse, 0, &own, &[]);
    }

    /// Appends the PDU that ends a connection.
    pub fn terminate(&self, out: &mut impl Sink, fatal: &Fatal) {
        let kind = match self.reader {
            Side::Host => Kind::TerminateByController,
            Side::Controller => Kind::TerminateByHost,
        };
        let header_bytes = kind.header_bytes();
        let len_bytes = header_bytes + fatal.header.len();
        let header = Header { kind: kind as u8, flags: 0, header_bytes, data_start: 0, len_bytes };
        let mut head = [0; HEAD_BYTES_MAX];
        put(&mut head, 0, &header.to_bytes());
        put(&mut head, COMMON_BYTES, &(fatal.cause as u16).to_le_bytes());
        put(&mut head, COMMON_BYTES + 2, &fatal.information.to_le_bytes());
        out.put(&head[..header_bytes]);
        out.put(&fatal.header);
    }

    /// Appends a command, with data in its capsule.
    pub fn command(&self, out: &mut impl Sink, command: &Command, data: &[u8]) {
        self.pdu(out, Kind::Command, 0, &command.0, data);
    }

    /// Appends a completion.
    #[inline(always)]
    pub fn completion(&self, out: &mut impl Sink, completion: &Completion) {
        self.pdu(out, Kind::Completion, 0, &completion.encode(), &[]);
    }

    /// Appends a part of a command's data.
    #[inline(always)]
    pub fn data(&self, out: &mut impl Sink, data: &Data<'_>) {
        let kind = match self.reader {
            Side::Host => Kind::DataToHost,
            Side::Controller => Kind::DataToController,
        };
        let own = own_of(data.id, data.tag, data.offset, data.bytes.len() as u32);
        let flags = if data.is_last { LAST } else { 0 } | if data.is_success { SUCCESS } else { 0 };
        self.pdu(out, kind, flags, &own, data.bytes);
    }

    /// Appends a request for data.
    pub fn ready(&self, out: &mut impl Sink, ready: &Ready) {
        let own = own_of(ready.id, ready.tag, ready.offset, ready.len_bytes);
        self.pdu(out, Kind::Ready, 0, &own, &[]);
    }

    /// Appends a PDU whose header has `own` after the common part, followed by zeros. Inlined, so that `own` is stored
    /// once.
    #[inline(always)]
    fn pdu<const OWN: usize>(&self, out: &mut impl Sink, kind: Kind, flags: u8, own: &[u8; OWN], data: &[u8]) {
        let digests = if kind.has_digests() { self.digests } else { Digests::default() };
        let header_bytes = kind.header_bytes();
        let head_end = header_bytes + digests.header_bytes();
        let (data_start, data_end) = if data.is_empty() {
            (0, head_end)
        } else {
            let start = head_end.next_multiple_of(4 * (usize::from(self.alignment) + 1));
            (start, start + data.len() + digests.data_bytes())
        };
        let digest_flags =
            (u8::from(digests.header) * HEADER_DIGEST) | (u8::from(digests.data && !data.is_empty()) * DATA_DIGEST);
        let header =
            Header { kind: kind as u8, flags: flags | digest_flags, header_bytes, data_start, len_bytes: data_end };
        let mut head = [0; HEAD_BYTES_MAX];
        put(&mut head, 0, &header.to_bytes());
        put(&mut head, COMMON_BYTES, own);
        if digests.header {
            let digest = digest_of(&head[..header_bytes]);
            put(&mut head, header_bytes, &digest);
        }
        out.put(&head[..head_end]);
        if data.is_empty() {
            return;
        }
        if data_start > head_end {
            out.put(&PADDING[..data_start - head_end]);
        }
        out.put(data);
        if digests.data {
            out.put(&digest_of(data));
        }
    }
}

/// Returns the specific part of a header of data, or of a request for data.
fn own_of(id: u16, tag: u16, offset: u32, len_bytes: u32) -> [u8; 16] {
    let place = u64::from(id) | u64::from(tag) << 16 | u64::from(offset) << 32;
    pair([place, len_bytes.into()])
}
