//! The log page of a discovery controller (70h): the addresses of subsystems.

use std::net::{IpAddr, SocketAddr};

use crate::bytes::{put, put_text, text_of, u8_at, u16_at, u64_at};

const HEAD_BYTES: usize = 1024;
const ENTRY_BYTES: usize = 1024;
const TCP: u8 = 3;
const ANY_CONTROLLER: u16 = 0xffff;
/// Minimum number of entries of an admin queue.
const ADMIN_QUEUE_ENTRIES: u16 = 32;

/// A subsystem and its address.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DiscoveryEntry {
    /// True if it is the discovery subsystem itself.
    pub is_discovery: bool,
    /// The number of its port.
    pub port: u16,
    /// Its name.
    pub subsystem: String,
    /// Its address.
    pub addr: SocketAddr,
}

/// The page.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct DiscoveryLog {
    /// The number of changes so far.
    pub generation: u64,
    /// Its entries.
    pub entries: Vec<DiscoveryEntry>,
}

impl DiscoveryLog {
    /// Encodes the page.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut page = vec![0; HEAD_BYTES + ENTRY_BYTES * self.entries.len()];
        put(&mut page, 0, &self.generation.to_le_bytes());
        put(&mut page, 8, &(self.entries.len() as u64).to_le_bytes());
        for (entry, bytes) in self.entries.iter().zip(page[HEAD_BYTES..].chunks_exact_mut(ENTRY_BYTES)) {
            entry.encode(bytes);
        }
        page
    }

    /// Decodes a page, as far as it is complete and valid.
    #[must_use]
    pub fn decode(page: &[u8]) -> DiscoveryLog {
        let count = usize::try_from(u64_at(page, 8)).unwrap_or(usize::MAX);
        let entries = page.get(HEAD_BYTES..).unwrap_or_default().chunks_exact(ENTRY_BYTES).take(count);
        DiscoveryLog { generation: u64_at(page, 0), entries: entries.filter_map(DiscoveryEntry::decode).collect() }
    }
}

impl DiscoveryEntry {
    fn encode(&self, bytes: &mut [u8]) {
        bytes[0] = TCP;
        bytes[1] = if self.addr.is_ipv4() { 1 } else { 2 };
        bytes[2] = if self.is_discovery { 3 } else { 2 };
        put(bytes, 4, &self.port.to_le_bytes());
        put(bytes, 6, &ANY_CONTROLLER.to_le_bytes());
        put(bytes, 8, &ADMIN_QUEUE_ENTRIES.to_le_bytes());
        put_text(bytes, 32, 32, &self.addr.port().to_string(), b' ');
        put_text(bytes, 256, 255, &self.subsystem, 0);
        put_text(bytes, 512, 256, &self.addr.ip().to_string(), b' ');
    }

    fn decode(bytes: &[u8]) -> Option<DiscoveryEntry> {
        if u8_at(bytes, 0) != TCP {
            return None;
        }
        let ip: IpAddr = text_of(&bytes[512..768]).parse().ok()?;
        let port = text_of(&bytes[32..64]).parse().ok()?;
        Some(DiscoveryEntry {
            is_discovery: u8_at(bytes, 2) != 2,
            port: u16_at(bytes, 4),
            subsystem: text_of(&bytes[256..512]),
            addr: SocketAddr::new(ip, port),
        })
    }
}
