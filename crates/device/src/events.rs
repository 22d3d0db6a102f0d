//! Asynchronous events: commands that are answered when something happens.
//!
//! An event is told once, until the host has read the page that it is about; then once more if it still holds.

use std::collections::VecDeque;

use nvme::Status;

use crate::limits;

/// Something that a host may want to know.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Event {
    /// Little room is left.
    SpareLow,
    /// The medium failed: nothing is written any more.
    MediumFailed,
}

const ALL: [Event; 2] = [Event::SpareLow, Event::MediumFailed];
/// The page that both are about.
const HEALTH_PAGE: u64 = 0x02;
/// Events of the controller's health.
const HEALTH: u64 = 0x01;

impl Event {
    /// Its bit among the warnings of the health page, by which hosts ask for it.
    pub(crate) fn bit(self) -> u32 {
        match self {
            Event::SpareLow => 1 << 0,
            Event::MediumFailed => 1 << 3,
        }
    }

    /// What the command that awaits it is answered with.
    fn result(self) -> u64 {
        let information = match self {
            Event::SpareLow => 0x02,
            Event::MediumFailed => 0x00,
        };
        HEALTH | information << 8 | HEALTH_PAGE << 16
    }
}

/// Whose events are awaited, and which were told.
#[derive(Default)]
pub(crate) struct Events {
    /// Commands, by their identifiers.
    awaiting: VecDeque<u16>,
    /// Those that the host wants: bits.
    pub(crate) wanted: u32,
    told: u32,
}

impl Events {
    /// The events that a host can ask for.
    pub(crate) const KNOWN: u32 = 1 | 1 << 3;

    /// The command of this identifier awaits an event.
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

    /// Whether the host awaits something that can come.
    pub(crate) fn is_awaited(&self) -> bool {
        self.wanted & !self.told != 0 && !self.awaiting.is_empty()
    }

    /// The host has read of all that holds.
    pub(crate) fn is_read(&mut self) {
        self.told = 0;
    }

    /// The next command to be answered, and with what, if `holds` says so of an event.
    pub(crate) fn next(&mut self, holds: impl Fn(Event) -> bool) -> Option<(u16, u64)> {
        let is_news = |event: &Event| self.wanted & !self.told & event.bit() != 0 && holds(*event);
        let event = ALL.into_iter().find(is_news)?;
        let id = self.awaiting.pop_front()?;
        self.told |= event.bit();
        Some((id, event.result()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_told_once_until_its_page_is_read() {
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
