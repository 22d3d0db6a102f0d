//! Asynchronous events: commands that are completed when an event occurs.
//!
//! An event is reported once until the host has read the corresponding log page; then once more if it still applies.

use std::collections::VecDeque;

use nvme::Status;

use crate::limits;

/// The events that a host can request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Event {
    /// Little space is left.
    SpareLow,
    /// The medium failed: no more writes are accepted.
    MediumFailed,
}

const ALL: [Event; 2] = [Event::SpareLow, Event::MediumFailed];
/// The log page for both.
const HEALTH_PAGE: u64 = 0x02;
/// The type of health events.
const HEALTH: u64 = 0x01;

impl Event {
    /// Returns its bit among the critical warnings of the health page, by which hosts enable it.
    pub(crate) fn bit(self) -> u32 {
        match self {
            Event::SpareLow => 1 << 0,
            Event::MediumFailed => 1 << 3,
        }
    }

    /// Returns the result of the command that waits for it.
    fn result(self) -> u64 {
        let information = match self {
            Event::SpareLow => 0x02,
            Event::MediumFailed => 0x00,
        };
        HEALTH | information << 8 | HEALTH_PAGE << 16
    }
}

/// Waiting event commands, and reported events.
#[derive(Default)]
pub(crate) struct Events {
    /// Commands, by their identifiers.
    awaiting: VecDeque<u16>,
    /// Enabled events, as bits.
    pub(crate) wanted: u32,
    reported: u32,
}

impl Events {
    /// The events that a host can enable.
    pub(crate) const KNOWN: u32 = 1 | 1 << 3;

    /// Adds a command that waits for an event.
    pub(crate) fn wait(&mut self, id: u16) -> Result<(), Status> {
        if self.awaiting.contains(&id) {
            return Err(Status::COMMAND_ID_CONFLICT);
        }
        if self.awaiting.len() == limits::EVENT_COUNT_MAX {
            return Err(Status::ASYNC_LIMIT_EXCEEDED);
        }
        self.awaiting.push_back(id);
        Ok(())
    }

    /// Returns whether the host waits for an event that can occur.
    pub(crate) fn is_awaited(&self) -> bool {
        self.wanted & !self.reported != 0 && !self.awaiting.is_empty()
    }

    /// Records that the host has read the log page.
    pub(crate) fn is_read(&mut self) {
        self.reported = 0;
    }

    /// Returns the next command to complete and its result, if `holds` returns true for an event.
    pub(crate) fn next(&mut self, holds: impl Fn(Event) -> bool) -> Option<(u16, u64)> {
        let is_new = |event: &Event| self.wanted & !self.reported & event.bit() != 0 && holds(*event);
        let event = ALL.into_iter().find(is_new)?;
        let id = self.awaiting.pop_front()?;
        self.reported |= event.bit();
        Some((id, event.result()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn event_is_reported_once_until_read() {
        let mut events = Events { wanted: Events::KNOWN, ..Events::default() };
        assert_eq!(events.next(|_| true), None, "nobody waits");
        (1..=4).for_each(|id| events.wait(id).expect("there is space"));
        assert_eq!(events.wait(4), Err(Status::COMMAND_ID_CONFLICT));
        assert_eq!(events.wait(5), Err(Status::ASYNC_LIMIT_EXCEEDED));
        assert_eq!(events.next(|_| false), None);
        assert_eq!(events.next(|event| event == Event::MediumFailed), Some((1, 0x02_0001)));
        assert_eq!(events.next(|_| true), Some((2, 0x02_0201)));
        assert_eq!(events.next(|_| true), None);
        events.is_read();
        assert_eq!(events.next(|_| true), Some((3, 0x02_0201)));
        assert!(events.is_awaited());
    }
}
