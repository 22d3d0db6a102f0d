//! Header and data digests: CRC32C, least significant byte first.

/// The length of a digest.
pub(super) const DIGEST_BYTES: usize = 4;

/// The digests used on a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Digests {
    /// Of each header, except those of the first two PDUs and of a Terminate.
    pub header: bool,
    /// Of each PDU's data.
    pub data: bool,
}

impl Digests {
    pub(super) fn of_bits(bits: u8) -> Digests {
        Digests { header: bits & 1 != 0, data: bits & 2 != 0 }
    }

    pub(super) fn bits(self) -> u8 {
        u8::from(self.header) | (u8::from(self.data) << 1)
    }

    pub(super) fn header_bytes(self) -> usize {
        if self.header { DIGEST_BYTES } else { 0 }
    }

    pub(super) fn data_bytes(self) -> usize {
        if self.data { DIGEST_BYTES } else { 0 }
    }
}

pub(super) fn digest_of(bytes: &[u8]) -> [u8; DIGEST_BYTES] {
    pmem::crc32c(0, bytes).to_le_bytes()
}
