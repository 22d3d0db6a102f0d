//! Mandatory properties of every command: a row without them does not compile, and none has a default. A wrong default
//! could show a password to other clients, return data without permission, or block all other clients.

use super::cost::Cost;
use super::needs::Needs;
use super::touches::Touches;
use crate::telemetry::Kind;

/// The policies of a command.
#[derive(Clone, Copy)]
pub(crate) struct Policy {
    /// The kind under which it is counted.
    pub(crate) kind: Kind,
    /// The keys and channels it uses, which its user must be permitted to use.
    pub(crate) touches: Touches,
    pub(crate) hides: Hides,
    pub(crate) when: When,
    pub(crate) cost: Cost,
    pub(crate) needs: Needs,
}

/// In the order of the rows.
pub(super) const fn policy(kind: Kind, touches: Touches, hides: Hides, when: When, cost: Cost, needs: Needs) -> Policy {
    Policy { kind, touches, hides, when, cost, needs }
}

/// The arguments that are hidden from other clients.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Hides {
    /// No argument is hidden.
    Open,
    /// This argument and all following ones are hidden, because they include passwords.
    From(usize),
}

/// The states of a session in which a command is accepted, and whether it is queued.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum When {
    /// Not while a RESP2 client is subscribed; queued between `MULTI` and `EXEC`.
    Usual,
    /// Also while a RESP2 client is subscribed; queued between `MULTI` and `EXEC`.
    Subscribed,
    /// Like `Subscribed`; it answers with messages instead of a reply, which clients receive even if they want no
    /// replies.
    Pushes,
    /// Not while a RESP2 client is subscribed; never queued.
    AtOnce,
    /// Like `AtOnce`; it executes the queued requests.
    Executes,
    /// Also while a RESP2 client is subscribed; never queued.
    Always,
}

impl When {
    /// Returns whether a transaction queues it for `EXEC`.
    pub(crate) fn waits(self) -> bool {
        matches!(self, When::Usual | When::Subscribed | When::Pushes)
    }

    /// Returns whether a subscribed RESP2 client may send it.
    pub(crate) fn serves_subscribers(self) -> bool {
        matches!(self, When::Subscribed | When::Pushes | When::Always)
    }
}
