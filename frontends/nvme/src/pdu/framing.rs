//! Splitting bytes into PDUs.

use ref_cast::RefCast;

use super::digest::{DIGEST_BYTES, digest_of};
use super::header::{COMMON_BYTES, DATA_DIGEST, HEADER_DIGEST, Header, Kind, LAST, SUCCESS};
use super::{Data, Digests, Fatal, FatalCause, InitialRequest, InitialResponse, Pdu, Ready};
use crate::bytes::{bytes_at, u8_at, u16_at, u32_at};
use crate::{Command, Completion};

/// The longest Terminate.
const TERMINATE_BYTES_MAX: usize = 152;
/// The largest alignment of data, in bytes.
const ALIGNMENT_BYTES_MAX: usize = 128;

/// The reading end of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// It reads a host's PDUs.
    Controller,
    /// It reads a controller's PDUs.
    Host,
}

/// The parameters for splitting a connection's bytes into PDUs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Framing {
    /// The reading end.
    pub side: Side,
    /// The negotiated digests.
    pub digests: Digests,
    /// Maximum data in a command capsule, in bytes.
    pub capsule_bytes_max: usize,
    /// Maximum data in any other PDU, in bytes.
    pub data_bytes_max: usize,
}

impl Framing {
    /// Returns the first PDU of `input` and its length, or `None` if it is incomplete.
    ///
    /// # Errors
    /// A violation of the format, as soon as it is detectable.
    #[inline]
    pub fn next<'a>(&self, input: &'a [u8]) -> Result<Option<(Pdu<'a>, usize)>, Fatal> {
        let Some(header) = Header::decode(input) else { return Ok(None) };
        let kind = self.check(&header, input)?;
        let Some(bytes) = input.get(..header.len_bytes) else { return Ok(None) };
        self.check_header_digest(&header, kind, bytes)?;
        Ok(Some((self.decode(&header, kind, bytes)?, header.len_bytes)))
    }

    /// Returns the maximum length of a PDU.
    #[must_use]
    pub fn len_bytes_max(&self) -> usize {
        72 + 2 * DIGEST_BYTES + ALIGNMENT_BYTES_MAX + self.capsule_bytes_max.max(self.data_bytes_max)
    }

    /// Validates a header, and returns its kind.
    fn check(&self, header: &Header, input: &[u8]) -> Result<Kind, Fatal> {
        let wrong = |at| Fatal::new(FatalCause::InvalidHeader, at, input);
        let kind = Kind::of(header.kind).filter(|kind| self.takes(*kind)).ok_or_else(|| wrong(0))?;
        if header.header_bytes != kind.header_bytes() {
            return Err(wrong(2));
        }
        if kind.has_digests() && header.flags & HEADER_DIGEST != u8::from(self.digests.header) {
            return Err(wrong(1));
        }
        let start = kind.header_bytes() + self.header_digest_bytes(kind);
        let is_len_right = match kind {
            kind if kind.is_terminate() => (start..=TERMINATE_BYTES_MAX).contains(&header.len_bytes),
            kind if kind.has_data() && header.len_bytes > start => {
                return self.check_data(header, kind, start, input).map(|()| kind);
            }
            _ => header.len_bytes == start,
        };
        if !is_len_right {
            return Err(wrong(4));
        }
        Ok(kind)
    }

    fn takes(&self, kind: Kind) -> bool {
        let from_host =
            matches!(kind, Kind::InitialRequest | Kind::TerminateByHost | Kind::Command | Kind::DataToController);
        from_host == (self.side == Side::Controller)
    }

    fn check_data(&self, header: &Header, kind: Kind, start: usize, input: &[u8]) -> Result<(), Fatal> {
        let max = if kind == Kind::Command { self.capsule_bytes_max } else { self.data_bytes_max };
        if !(start..=start + ALIGNMENT_BYTES_MAX).contains(&header.data_start) {
            return Err(Fatal::new(FatalCause::InvalidHeader, 3, input));
        }
        if header.flags & DATA_DIGEST != u8::from(self.digests.data) << 1 {
            return Err(Fatal::new(FatalCause::InvalidHeader, 1, input));
        }
        let around = header.data_start + self.digests.data_bytes();
        let len_bytes = header
            .len_bytes
            .checked_sub(around)
            .filter(|len| *len > 0)
            .ok_or_else(|| Fatal::new(FatalCause::InvalidHeader, 4, input))?;
        if len_bytes > max {
            return Err(Fatal::new(FatalCause::DataLimit, 4, input));
        }
        Ok(())
    }

    fn header_digest_bytes(&self, kind: Kind) -> usize {
        if kind.has_digests() { self.digests.header_bytes() } else { 0 }
    }

    fn check_header_digest(&self, header: &Header, kind: Kind, bytes: &[u8]) -> Result<(), Fatal> {
        let (head, rest) = bytes.split_at(header.header_bytes);
        let given = bytes_at::<DIGEST_BYTES>(rest, 0);
        if self.header_digest_bytes(kind) > 0 && given != digest_of(head) {
            return Err(Fatal::new(FatalCause::HeaderDigest, u32::from_le_bytes(given), bytes));
        }
        Ok(())
    }

    #[inline]
    fn decode<'a>(&self, header: &Header, kind: Kind, bytes: &'a [u8]) -> Result<Pdu<'a>, Fatal> {
        Ok(match kind {
            Kind::InitialRequest => Pdu::InitialRequest(InitialRequest {
                version: u16_at(bytes, 8),
                alignment: u8_at(bytes, 10),
                digests: Digests::of_bits(u8_at(bytes, 11)),
                ready_count_max: u32_at(bytes, 12),
            }),
            Kind::InitialResponse => Pdu::InitialResponse(InitialResponse {
                version: u16_at(bytes, 8),
                alignment: u8_at(bytes, 10),
                digests: Digests::of_bits(u8_at(bytes, 11)),
                data_bytes_max: u32_at(bytes, 12),
            }),
            Kind::TerminateByHost | Kind::TerminateByController => {
                Pdu::Terminate { cause: u16_at(bytes, 8), information: u32_at(bytes, 10) }
            }
            Kind::Command => match self.data(header, bytes) {
                (data, true) => Pdu::Command(command_in(bytes), data),
                (_, false) => Pdu::CorruptCommand(command_in(bytes)),
            },
            Kind::Completion => Pdu::Completion(Completion::decode(&bytes_at(bytes, 8))),
            Kind::DataToController | Kind::DataToHost => self.decode_data(header, bytes)?,
            Kind::Ready => Pdu::Ready(Ready {
                id: u16_at(bytes, 8),
                tag: u16_at(bytes, 10),
                offset: u32_at(bytes, 12),
                len_bytes: u32_at(bytes, 16),
            }),
        })
    }

    fn decode_data<'a>(&self, header: &Header, bytes: &'a [u8]) -> Result<Pdu<'a>, Fatal> {
        let (data, is_whole) = self.data(header, bytes);
        if u32_at(bytes, 16) as usize != data.len() {
            return Err(Fatal::new(FatalCause::InvalidHeader, 16, bytes));
        }
        let data = Data {
            id: u16_at(bytes, 8),
            tag: u16_at(bytes, 10),
            offset: u32_at(bytes, 12),
            is_last: header.flags & LAST != 0,
            is_success: header.flags & SUCCESS != 0,
            bytes: data,
        };
        Ok(if is_whole { Pdu::Data(data) } else { Pdu::CorruptData(data) })
    }

    /// Returns the data of a PDU with validated lengths, and whether its digest is correct.
    fn data<'a>(&self, header: &Header, bytes: &'a [u8]) -> (&'a [u8], bool) {
        if header.len_bytes <= header.header_bytes + self.digests.header_bytes() {
            return (&[], true);
        }
        let end = bytes.len() - self.digests.data_bytes();
        let data = &bytes[header.data_start..end];
        (data, !self.digests.data || bytes[end..] == digest_of(data))
    }
}

/// Returns the command of a complete capsule, in place.
fn command_in(bytes: &[u8]) -> &Command {
    const NONE: Command = Command([0; Command::BYTES]);
    bytes.get(COMMON_BYTES..).and_then(|rest| rest.first_chunk()).map_or(&NONE, Command::ref_cast)
}
