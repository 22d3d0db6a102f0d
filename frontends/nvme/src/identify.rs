//! The pages of Identify (base specification, 5.17; Key Value command set, 4.1.5).

use crate::bytes::{put, put_text, text_of, u8_at, u16_at, u32_at, u64_at};
use crate::{IDENTIFY_BYTES, KV_COMMAND_SET, Key, VERSION};

/// The type of a controller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ControllerKind {
    /// Commands on namespaces.
    Io = 1,
    /// Reporting the addresses of subsystems.
    Discovery = 2,
}

/// The data of a controller (page 01h).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IdentifyController {
    /// Its type.
    pub kind: ControllerKind,
    /// Its number.
    pub controller: u16,
    /// The subsystem's serial number, up to 20 characters.
    pub serial: String,
    /// Its model, up to 40 characters.
    pub model: String,
    /// Its version, up to 8 characters.
    pub firmware: String,
    /// Maximum data of a command, as a power of two of 4 KiB.
    pub transfer_max: u8,
    /// Maximum number of commands in a queue.
    pub command_count_max: u16,
    /// Maximum number of outstanding asynchronous event commands.
    pub event_count_max: u8,
    /// Maximum data in a command capsule, in bytes; a multiple of 16.
    pub capsule_bytes_max: u32,
    /// The store's capacity in bytes.
    pub capacity_bytes: u64,
    /// True if a completed write may be lost on a power failure until a later Flush is completed.
    pub has_volatile_cache: bool,
    /// The subsystem's name.
    pub subsystem: String,
}

/// The keep-alive timer's resolution, in units of 100 ms.
const KEEP_ALIVE_UNITS: u16 = 1;
/// Each command restarts the keep-alive timer.
const TRAFFIC_KEEPS_ALIVE: u32 = 1 << 6;
/// SGLs without alignment, and with data in a capsule.
const SGL_SUPPORT: u32 = 1 | 1 << 20;
/// The page of command effects, and log pages from an offset on.
const LOG_ATTRIBUTES: u8 = 1 << 1 | 1 << 2;
/// The page of supported log pages, and of features and management commands with their effects.
const LOG_OF_LOGS: u8 = 1 << 5;
/// The subsystem may have several controllers: for further paths of a host, or further hosts.
const SEVERAL_CONTROLLERS: u8 = 1 << 1;

impl IdentifyController {
    /// Encodes the page.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut page = vec![0; IDENTIFY_BYTES];
        put_text(&mut page, 4, 20, &self.serial, b' ');
        put_text(&mut page, 24, 40, &self.model, b' ');
        put_text(&mut page, 64, 8, &self.firmware, b' ');
        page[77] = self.transfer_max;
        put(&mut page, 78, &self.controller.to_le_bytes());
        put(&mut page, 80, &VERSION.to_le_bytes());
        put(&mut page, 96, &TRAFFIC_KEEPS_ALIVE.to_le_bytes());
        page[111] = self.kind as u8;
        page[259] = self.event_count_max.saturating_sub(1);
        page[261] = LOG_ATTRIBUTES;
        put(&mut page, 280, &self.capacity_bytes.to_le_bytes());
        put(&mut page, 320, &KEEP_ALIVE_UNITS.to_le_bytes());
        put(&mut page, 514, &self.command_count_max.to_le_bytes());
        put(&mut page, 536, &SGL_SUPPORT.to_le_bytes());
        put_text(&mut page, 768, 255, &self.subsystem, 0);
        if self.kind == ControllerKind::Io {
            page[76] = SEVERAL_CONTROLLERS;
            page[261] |= LOG_OF_LOGS;
            // Sizes of entries: exactly 64 and 16 bytes.
            page[512] = 0x66;
            page[513] = 0x44;
            put(&mut page, 516, &1u32.to_le_bytes());
            // Flush is permitted for all namespaces.
            page[525] = u8::from(self.has_volatile_cache) | 1 << 1 | 1 << 2;
            put(&mut page, 1792, &((64 + self.capsule_bytes_max) / 16).to_le_bytes());
            put(&mut page, 1796, &1u32.to_le_bytes());
        }
        page[1803] = 1;
        page
    }

    /// Decodes a page.
    #[must_use]
    pub fn decode(page: &[u8]) -> IdentifyController {
        let field = |at: usize, len: usize| text_of(page.get(at..at + len).unwrap_or_default());
        let is_discovery = u8_at(page, 111) == ControllerKind::Discovery as u8;
        IdentifyController {
            kind: if is_discovery { ControllerKind::Discovery } else { ControllerKind::Io },
            controller: u16_at(page, 78),
            serial: field(4, 20),
            model: field(24, 40),
            firmware: field(64, 8),
            transfer_max: u8_at(page, 77),
            command_count_max: u16_at(page, 514),
            event_count_max: u8_at(page, 259).saturating_add(1),
            capsule_bytes_max: u32_at(page, 1792).saturating_mul(16).saturating_sub(64),
            capacity_bytes: u64_at(page, 280),
            has_volatile_cache: u8_at(page, 525) & 1 != 0,
            subsystem: field(768, 256),
        }
    }
}

/// The data of a Key Value namespace (page 05h).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KvNamespace {
    /// Its capacity in bytes.
    pub size_bytes: u64,
    /// Its used bytes.
    pub used_bytes: u64,
    /// The longest value.
    pub value_bytes_max: u32,
    /// A permanent identifier.
    pub uuid: [u8; 16],
    /// True if writes are impossible, for whatever reason.
    pub is_write_protected: bool,
}

impl KvNamespace {
    /// Encodes the page: one format, with keys of up to 16 bytes and any number of them.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut page = vec![0; IDENTIFY_BYTES];
        put(&mut page, 0, &self.size_bytes.to_le_bytes());
        put(&mut page, 16, &self.used_bytes.to_le_bytes());
        // Controllers may share it.
        page[26] = 1;
        page[43] = u8::from(self.is_write_protected);
        put(&mut page, 48, &self.uuid);
        put(&mut page, 72, &(Key::BYTES_MAX as u16).to_le_bytes());
        put(&mut page, 76, &self.value_bytes_max.to_le_bytes());
        page
    }

    /// Decodes a page.
    #[must_use]
    pub fn decode(page: &[u8]) -> KvNamespace {
        KvNamespace {
            size_bytes: u64_at(page, 0),
            used_bytes: u64_at(page, 16),
            value_bytes_max: u32_at(page, 76),
            uuid: crate::bytes::bytes_at(page, 48),
            is_write_protected: u8_at(page, 43) & 1 != 0,
        }
    }
}

/// Encodes the page of a namespace of any command set (page 08h): it is ready, and may be shared.
#[must_use]
pub fn independent_namespace(is_write_protected: bool) -> Vec<u8> {
    let mut page = vec![0; IDENTIFY_BYTES];
    page[1] = 1;
    page[8] = u8::from(is_write_protected);
    page[14] = 1;
    page
}

/// Encodes the list of the namespaces above `above` among those numbered 1 to `count` (pages 02h and 07h).
#[must_use]
pub fn active_namespaces(above: u32, count: u32) -> Vec<u8> {
    let mut page = vec![0; IDENTIFY_BYTES];
    let numbers = above.saturating_add(1)..=count;
    for (number, place) in numbers.zip(page.chunks_exact_mut(4)) {
        place.copy_from_slice(&number.to_le_bytes());
    }
    page
}

/// Encodes a namespace's identifiers (page 03h): a UUID, and its command set.
#[must_use]
pub fn namespace_descriptors(uuid: [u8; 16]) -> Vec<u8> {
    const UUID: u8 = 3;
    const COMMAND_SET: u8 = 4;
    let mut page = vec![0; IDENTIFY_BYTES];
    put(&mut page, 0, &[UUID, 16, 0, 0]);
    put(&mut page, 4, &uuid);
    put(&mut page, 20, &[COMMAND_SET, 1, 0, 0, KV_COMMAND_SET]);
    page
}

/// Encodes the combinations of command sets (page 1Ch): one, with only this command set.
#[must_use]
pub fn command_sets() -> Vec<u8> {
    let mut page = vec![0; IDENTIFY_BYTES];
    put(&mut page, 0, &(1u64 << KV_COMMAND_SET).to_le_bytes());
    page
}
