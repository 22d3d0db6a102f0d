//! The common eight-byte header of PDUs, and its valid values for each kind.

use crate::bytes::{u8_at, u32_at};

pub(super) const COMMON_BYTES: usize = 8;

pub(super) const HEADER_DIGEST: u8 = 1 << 0;
pub(super) const DATA_DIGEST: u8 = 1 << 1;
pub(super) const LAST: u8 = 1 << 2;
pub(super) const SUCCESS: u8 = 1 << 3;

/// The kind of a PDU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    InitialRequest = 0,
    InitialResponse = 1,
    TerminateByHost = 2,
    TerminateByController = 3,
    Command = 4,
    Completion = 5,
    DataToController = 6,
    DataToHost = 7,
    Ready = 9,
}

impl Kind {
    pub(super) fn of(number: u8) -> Option<Kind> {
        Some(match number {
            0 => Kind::InitialRequest,
            1 => Kind::InitialResponse,
            2 => Kind::TerminateByHost,
            3 => Kind::TerminateByController,
            4 => Kind::Command,
            5 => Kind::Completion,
            6 => Kind::DataToController,
            7 => Kind::DataToHost,
            9 => Kind::Ready,
            _ => return None,
        })
    }

    /// Returns the length of its header.
    pub(super) fn header_bytes(self) -> usize {
        match self {
            Kind::InitialRequest | Kind::InitialResponse => 128,
            Kind::Command => 72,
            _ => 24,
        }
    }

    pub(super) fn has_digests(self) -> bool {
        !matches!(
            self,
            Kind::InitialRequest | Kind::InitialResponse | Kind::TerminateByHost | Kind::TerminateByController
        )
    }

    pub(super) fn has_data(self) -> bool {
        matches!(self, Kind::Command | Kind::DataToController | Kind::DataToHost)
    }

    pub(super) fn is_terminate(self) -> bool {
        matches!(self, Kind::TerminateByHost | Kind::TerminateByController)
    }
}

/// The common header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Header {
    pub(super) kind: u8,
    pub(super) flags: u8,
    pub(super) header_bytes: usize,
    /// Offset from the PDU's start; 0 without data.
    pub(super) data_start: usize,
    pub(super) len_bytes: usize,
}

impl Header {
    /// Decodes the header of `bytes`; `None` if it is incomplete.
    pub(super) fn decode(bytes: &[u8]) -> Option<Header> {
        (bytes.len() >= COMMON_BYTES).then(|| Header {
            kind: u8_at(bytes, 0),
            flags: u8_at(bytes, 1),
            header_bytes: u8_at(bytes, 2).into(),
            data_start: u8_at(bytes, 3).into(),
            len_bytes: u32_at(bytes, 4) as usize,
        })
    }

    pub(super) fn to_bytes(self) -> [u8; COMMON_BYTES] {
        let places = u64::from(self.header_bytes as u8) << 16 | u64::from(self.data_start as u8) << 24;
        (u64::from(self.kind) | u64::from(self.flags) << 8 | places | (self.len_bytes as u64) << 32).to_le_bytes()
    }
}
