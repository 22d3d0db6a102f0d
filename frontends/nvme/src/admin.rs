//! Commands of the admin queue (base specification, 5).

use crate::{Command, Status};

const GET_LOG_PAGE: u8 = 0x02;
const IDENTIFY: u8 = 0x06;
const ABORT: u8 = 0x08;
const SET_FEATURES: u8 = 0x09;
const GET_FEATURES: u8 = 0x0a;
const AWAIT_EVENT: u8 = 0x0c;
const KEEP_ALIVE: u8 = 0x18;
/// A vendor-specific opcode without data.
const END_CONTROLLER: u8 = 0xc0;

/// A command of the admin queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Admin {
    /// Returns a page about the controller, or about namespaces.
    Identify {
        /// The page.
        page: u8,
        /// The command set, for some pages.
        command_set: u8,
    },
    /// Returns a part of a log page.
    GetLogPage(LogPage),
    /// Sets a feature.
    SetFeature {
        /// Its number.
        number: u8,
        /// Its value.
        value: u32,
        /// True if it survives a reset.
        save: bool,
    },
    /// Returns a feature.
    GetFeature {
        /// Its number.
        number: u8,
        /// The kind of value: 0 the current, 1 the default, 2 the saved, 3 its capabilities.
        select: u8,
    },
    /// Aborts a command.
    Abort {
        /// Its queue.
        queue: u16,
        /// Its identifier.
        id: u16,
    },
    /// Completes when an event occurs.
    AwaitEvent,
    /// Restarts the keep-alive timer.
    KeepAlive,
    /// Ends another controller of the same host, if it exists: after the completion, no command sent to that controller
    /// is executed any more.
    EndController {
        /// Its number.
        number: u16,
    },
}

/// A part of a log page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LogPage {
    /// The page.
    pub page: u8,
    /// The command set, for the page of command effects.
    pub command_set: u8,
    /// The offset in bytes.
    pub offset: u64,
    /// The length in bytes; a multiple of four.
    pub len_bytes: u64,
    /// True if the event that led to the page is kept after reading it.
    pub retains_event: bool,
}

/// Features by their numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Feature;

impl Feature {
    /// Use of the volatile write cache.
    pub const WRITE_CACHE: u8 = 0x06;
    /// The number of I/O queues, minus one: submission queues in the low half, completion queues in the high half.
    pub const QUEUE_COUNT: u8 = 0x07;
    /// The enabled asynchronous events.
    pub const EVENTS: u8 = 0x0b;
    /// The keep-alive time in ms.
    pub const KEEP_ALIVE: u8 = 0x0f;
    /// Bit 0: deleting a missing key is an error.
    pub const KEY_VALUE: u8 = 0x20;
}

impl Admin {
    /// Decodes `command`.
    ///
    /// # Errors
    /// The status for its completion.
    pub fn of(command: &Command) -> Result<Admin, Status> {
        let dword = |number| command.dword(number);
        Ok(match command.opcode() {
            GET_LOG_PAGE => Admin::GetLogPage(LogPage {
                page: dword(10) as u8,
                command_set: (dword(14) >> 24) as u8,
                offset: u64::from(dword(12)) | u64::from(dword(13)) << 32,
                len_bytes: 4 * (u64::from(dword(10) >> 16) + (u64::from(dword(11) & 0xffff) << 16) + 1),
                retains_event: dword(10) >> 15 & 1 != 0,
            }),
            IDENTIFY => Admin::Identify { page: dword(10) as u8, command_set: (dword(11) >> 24) as u8 },
            ABORT => Admin::Abort { queue: dword(10) as u16, id: (dword(10) >> 16) as u16 },
            SET_FEATURES => Admin::SetFeature { number: dword(10) as u8, value: dword(11), save: dword(10) >> 31 != 0 },
            GET_FEATURES => Admin::GetFeature { number: dword(10) as u8, select: (dword(10) >> 8 & 7) as u8 },
            AWAIT_EVENT => Admin::AwaitEvent,
            KEEP_ALIVE => Admin::KeepAlive,
            END_CONTROLLER => Admin::EndController { number: dword(10) as u16 },
            _ => return Err(Status::INVALID_OPCODE),
        })
    }

    /// Encodes the command, for this namespace.
    #[must_use]
    pub fn command(&self, id: u16, namespace: u32) -> Command {
        let new = |opcode| Command::new(opcode, id, namespace);
        match *self {
            Admin::Identify { page, command_set } => {
                new(IDENTIFY).with_dword(10, page.into()).with_dword(11, u32::from(command_set) << 24)
            }
            Admin::GetLogPage(log) => {
                let dwords = log.len_bytes.div_ceil(4).saturating_sub(1);
                let low = u32::from(log.page) | u32::from(log.retains_event) << 15 | (dwords as u32) << 16;
                new(GET_LOG_PAGE)
                    .with_dword(10, low)
                    .with_dword(11, (dwords >> 16) as u32 & 0xffff)
                    .with_dword(12, log.offset as u32)
                    .with_dword(13, (log.offset >> 32) as u32)
                    .with_dword(14, u32::from(log.command_set) << 24)
            }
            Admin::SetFeature { number, value, save } => {
                new(SET_FEATURES).with_dword(10, u32::from(number) | u32::from(save) << 31).with_dword(11, value)
            }
            Admin::GetFeature { number, select } => {
                new(GET_FEATURES).with_dword(10, u32::from(number) | u32::from(select & 7) << 8)
            }
            Admin::Abort { queue, id } => new(ABORT).with_dword(10, u32::from(queue) | u32::from(id) << 16),
            Admin::AwaitEvent => new(AWAIT_EVENT),
            Admin::KeepAlive => new(KEEP_ALIVE),
            Admin::EndController { number } => new(END_CONTROLLER).with_dword(10, number.into()),
        }
    }
}
