//! What the table says of one command.

use resp::Request;

use super::category;
use super::flag;
use super::policy::{Policy, When};
use super::touches::{Access, Channels, Touches};

/// How a command is executed. Its function is no part of the table: the dispatcher looks it up by the command's number.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    /// By its function.
    Apply,
    /// By its function, or together with neighbouring reads: it replies with the values of its keys.
    Read(ReadShape),
    /// By its function, or together with neighbours if they have no options.
    Put,
    /// By one of its subcommands.
    Subcommands,
}

/// How a read replies.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadShape {
    /// With the value of its one key.
    Value,
    /// With an array of values.
    Array,
}

/// Beside which others a command may run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Isolation {
    /// Beside any that is not alone: what it does is one step of the store.
    Shared,
    /// Nobody else executes anything meanwhile: it is several steps, which others must not see.
    Alone,
}

/// What `COMMAND DOCS` tells.
#[derive(Clone, Copy)]
pub(crate) struct Docs {
    pub(crate) group: &'static str,
    /// The version of Redis that has had it first; of hikv, if Redis has no such command.
    pub(crate) since: &'static str,
    pub(crate) summary: &'static str,
    pub(crate) complexity: &'static str,
}

/// A command, or a subcommand, as the table has it.
pub(crate) struct Command {
    /// In small letters; `command|subcommand` for a subcommand.
    pub(crate) name: &'static str,
    /// The number of arguments, the name among them; if negative, the least number.
    pub(crate) arity: i64,
    pub(crate) flags: u32,
    pub(crate) categories: u32,
    pub(crate) policy: Policy,
    pub(crate) isolation: Isolation,
    pub(crate) action: Action,
    pub(crate) subcommands: &'static [Command],
    pub(crate) docs: Docs,
}

impl Command {
    pub(super) const fn new(name: &'static str, arity: i64, flags: u32, policy: Policy, action: Action) -> Command {
        Command {
            name,
            arity,
            flags,
            categories: category::of_flags(flags),
            policy,
            isolation: Isolation::Shared,
            action,
            subcommands: &[],
            docs: Docs { group: "", since: "", summary: "", complexity: "" },
        }
    }

    pub(super) const fn in_categories(self, categories: u32) -> Command {
        Command { categories: self.categories | categories, ..self }
    }

    pub(super) const fn alone(self) -> Command {
        Command { isolation: Isolation::Alone, ..self }
    }

    pub(super) const fn with_subcommands(self, subcommands: &'static [Command]) -> Command {
        Command { subcommands, ..self }
    }

    pub(super) const fn documented(
        self,
        group: &'static str,
        since: &'static str,
        summary: &'static str,
        complexity: &'static str,
    ) -> Command {
        Command { docs: Docs { group, since, summary, complexity }, ..self }
    }

    /// Whether a request may have so many arguments.
    pub(crate) fn takes(&self, count: usize) -> bool {
        let count = count as i64;
        if self.arity < 0 { count >= -self.arity } else { count == self.arity }
    }

    pub(crate) fn has(&self, flags: u32) -> bool {
        self.flags & flags != 0
    }

    /// Whether nobody else may execute anything beside this request.
    pub(crate) fn runs_alone(&self) -> bool {
        self.isolation == Isolation::Alone
    }

    pub(crate) fn is_read(&self) -> bool {
        matches!(self.action, Action::Read(_))
    }

    /// The numbers of the arguments that are keys in a request of it, and what is done with each.
    pub(crate) fn keys_of(&self, request: &Request<'_>) -> impl Iterator<Item = (usize, Access)> {
        self.policy.touches.keys().into_iter().flat_map(move |keys| keys.of(request))
    }

    /// Whether it answers with messages rather than with a reply, which clients get in any case.
    pub(crate) fn pushes(&self) -> bool {
        self.policy.when == When::Pushes
    }

    /// Whether it executes what a transaction has waiting.
    pub(crate) fn executes(&self) -> bool {
        self.policy.when == When::Executes
    }

    /// Whether others may notice it by themselves: it writes, or sends messages.
    pub(crate) fn is_noticed(&self) -> bool {
        self.has(flag::WRITE) || matches!(self.policy.touches, Touches::Channels(Channels::Told))
    }

    /// True for `CLIENT` and its subcommands.
    pub(crate) fn is_about_clients(&self) -> bool {
        self.name.starts_with("client")
    }

    /// The name without that of the command it is a subcommand of.
    pub(crate) fn short_name(&self) -> &'static str {
        self.name.split_once('|').map_or(self.name, |(_, name)| name)
    }
}
