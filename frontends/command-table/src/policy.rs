//! The properties of commands that no row may omit: a row without a policy does not compile.
//!
//! Each row begins with a preset, [`SERVER`], [`SECRET`] or [`on`], and names the properties that differ. A wrong one
//! could show a password to other clients, return data without permission, or block all other clients.

use crate::cost::Cost;
use crate::kind::Kind;
use crate::needs::Needs;
use crate::touches::Touches;

/// The policies of a command.
#[derive(Clone, Copy)]
pub struct Policy {
    /// The kind under which it is counted.
    pub kind: Kind,
    /// The keys and channels it uses, which its user must be permitted to use.
    pub touches: Touches,
    /// The arguments that other clients must not see.
    pub hides: Hides,
    /// The states of a session in which it is accepted.
    pub when: When,
    /// The factors of its execution time.
    pub cost: Cost,
    /// The features of the engine that it needs.
    pub needs: Needs,
}

/// The policy of a command about connections or the server itself, whose arguments are not secret.
pub(crate) const SERVER: Policy = on(Kind::Other, Touches::Nothing);

/// The same, if its arguments may include passwords: all after the subcommand's name are hidden.
pub(crate) const SECRET: Policy = SERVER.hides_from(2);

/// Returns the policy of a command on these keys or channels: open, usual, of constant time, for every engine.
pub(crate) const fn on(kind: Kind, touches: Touches) -> Policy {
    Policy { kind, touches, hides: Hides::Open, when: When::Usual, cost: Cost::Moment, needs: Needs::Any }
}

impl Policy {
    pub(crate) const fn hides_from(self, argument: usize) -> Policy {
        Policy { hides: Hides::From(argument), ..self }
    }

    pub(crate) const fn when(self, when: When) -> Policy {
        Policy { when, ..self }
    }

    pub(crate) const fn costs(self, cost: Cost) -> Policy {
        Policy { cost, ..self }
    }

    pub(crate) const fn needs(self, needs: Needs) -> Policy {
        Policy { needs, ..self }
    }
}

/// The arguments that are hidden from other clients.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hides {
    /// No argument is hidden.
    Open,
    /// This argument and all following ones are hidden, because they include passwords.
    From(usize),
}

/// The states of a session in which a command is accepted, and whether it is queued.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum When {
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
    pub fn waits(self) -> bool {
        matches!(self, When::Usual | When::Subscribed | When::Pushes)
    }

    /// Returns whether its client may receive fewer messages afterwards.
    #[inline]
    pub fn may_end_messages(self) -> bool {
        matches!(self, When::Pushes | When::Executes | When::Always)
    }

    /// Returns whether a subscribed RESP2 client may send it.
    pub fn serves_subscribers(self) -> bool {
        matches!(self, When::Subscribed | When::Pushes | When::Always)
    }
}
