//! Log pages (base specification, 5.16).

use crate::KV_COMMAND_SET;
use crate::bytes::{put, put_text, u8_at};

/// The health page of a controller (02h).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Health {
    /// True if the spare space is below its threshold.
    pub is_spare_low: bool,
    /// True if writes are impossible.
    pub is_read_only: bool,
    /// Spare space in percent.
    pub spare_percent: u8,
    /// The threshold for an event.
    pub threshold_percent: u8,
    /// Number of read commands.
    pub read_count: u64,
    /// Number of write commands.
    pub write_count: u64,
}

impl Health {
    /// The length of the page.
    pub const BYTES: usize = 512;
    /// The temperature of a device without a thermometer: 20 °C, in kelvin.
    const TEMPERATURE: u16 = 293;

    /// Encodes the page.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut page = vec![0; Health::BYTES];
        page[0] = u8::from(self.is_spare_low) | u8::from(self.is_read_only) << 3;
        put(&mut page, 1, &Health::TEMPERATURE.to_le_bytes());
        page[3] = self.spare_percent;
        page[4] = self.threshold_percent;
        put(&mut page, 64, &self.read_count.to_le_bytes());
        put(&mut page, 80, &self.write_count.to_le_bytes());
        page
    }

    /// Decodes a page.
    #[must_use]
    pub fn decode(page: &[u8]) -> Health {
        let warnings = u8_at(page, 0);
        Health {
            is_spare_low: warnings & 1 != 0,
            is_read_only: warnings & 1 << 3 != 0,
            spare_percent: u8_at(page, 3),
            threshold_percent: u8_at(page, 4),
            read_count: crate::bytes::u64_at(page, 64),
            write_count: crate::bytes::u64_at(page, 80),
        }
    }
}

/// The length of a page with a dword for each of 256 numbers.
const BY_NUMBER_BYTES: usize = 1024;

fn by_number(entries: impl IntoIterator<Item = (u8, u32)>) -> Vec<u8> {
    let mut page = vec![0; BY_NUMBER_BYTES];
    entries.into_iter().for_each(|(number, entry)| put(&mut page, 4 * usize::from(number), &entry.to_le_bytes()));
    page
}

/// Encodes the page of supported log pages (00h).
#[must_use]
pub fn supported_logs(pages: &[u8]) -> Vec<u8> {
    const SUPPORTED: u32 = 1;
    by_number(pages.iter().map(|page| (*page, SUPPORTED)))
}

/// Encodes the page of supported features (12h), each with its scope: namespace or controller.
#[must_use]
pub fn supported_features(of_controller: &[u8], of_namespace: &[u8]) -> Vec<u8> {
    const SUPPORTED: u32 = 1;
    const OF_NAMESPACE: u32 = 1 << 20;
    const OF_CONTROLLER: u32 = 1 << 21;
    let controllers = of_controller.iter().map(|number| (*number, SUPPORTED | OF_CONTROLLER));
    by_number(controllers.chain(of_namespace.iter().map(|number| (*number, SUPPORTED | OF_NAMESPACE))))
}

/// Encodes the firmware page (03h): one slot, with this version.
#[must_use]
pub fn firmware(version: &str) -> Vec<u8> {
    let mut page = vec![0; 512];
    page[0] = 1;
    put_text(&mut page, 8, 8, version, b' ');
    page
}

/// Encodes the page of supported commands and their effects (05h), for a command set.
#[must_use]
pub fn effects(command_set: u8) -> Vec<u8> {
    const SUPPORTED: u8 = 1;
    const CHANGES_CONTENTS: u8 = 1 << 1;
    const ADMIN: [u8; 8] = [0x02, 0x06, 0x08, 0x09, 0x0a, 0x0c, 0x18, 0xc0];
    const READING: [u8; 5] = [0x00, 0x02, 0x06, 0x14, 0xc2];
    const WRITING: [u8; 2] = [0x01, 0x10];
    let mut page = vec![0; 4096];
    ADMIN.iter().for_each(|opcode| page[4 * usize::from(*opcode)] = SUPPORTED);
    if command_set == KV_COMMAND_SET {
        let io = |opcode: u8| 1024 + 4 * usize::from(opcode);
        READING.iter().for_each(|opcode| page[io(*opcode)] = SUPPORTED);
        WRITING.iter().for_each(|opcode| page[io(*opcode)] = SUPPORTED | CHANGES_CONTENTS);
    }
    page
}
