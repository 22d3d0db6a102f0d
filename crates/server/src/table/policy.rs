//! What must be said of every command: a row without that does not compile, and nothing of it has a default. What a
//! row forgot would show a password to others, give a client what is not its own, or keep all others waiting.

use super::needs::Needs;
use super::takes::Takes;
use super::touches::Touches;
use crate::telemetry::Kind;

/// The policies that concern a command.
#[derive(Clone, Copy)]
pub(crate) struct Policy {
    /// Beside which others it is counted.
    pub(crate) kind: Kind,
    /// Which keys and channels it concerns, and so what its user must be allowed.
    pub(crate) touches: Touches,
    pub(crate) hides: Hides,
    pub(crate) when: When,
    pub(crate) takes: Takes,
    pub(crate) needs: Needs,
}

/// In the order in which rows say it.
pub(super) const fn policy(
    kind: Kind,
    touches: Touches,
    hides: Hides,
    when: When,
    takes: Takes,
    needs: Needs,
) -> Policy {
    Policy { kind, touches, hides, when, takes, needs }
}

/// What of a request nobody else may see.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Hides {
    /// Nothing is hidden.
    Open,
    /// Argument number so and so, and those that follow: passwords are among them.
    From(usize),
}

/// Where in a conversation it may come, and how it is answered there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum When {
    /// Not while a RESP2 client is subscribed; between `MULTI` and `EXEC` it waits.
    Usual,
    /// While a RESP2 client is subscribed, too; between `MULTI` and `EXEC` it waits.
    Subscribed,
    /// As `Subscribed`; it is answered by messages rather than by a reply, which a client gets in any case.
    Pushes,
    /// Not while a RESP2 client is subscribed; it never waits for `EXEC`.
    AtOnce,
    /// As `AtOnce`; it executes what waits.
    Executes,
    /// While a RESP2 client is subscribed, too; it never waits for `EXEC`.
    Always,
}

impl When {
    /// Whether a transaction keeps it for `EXEC`.
    pub(crate) fn waits(self) -> bool {
        matches!(self, When::Usual | When::Subscribed | When::Pushes)
    }

    /// Whether a RESP2 client may send it that is subscribed.
    pub(crate) fn serves_subscribers(self) -> bool {
        matches!(self, When::Subscribed | When::Pushes | When::Always)
    }
}
