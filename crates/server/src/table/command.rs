//! What the table says of one command.

use super::category;
use crate::call::Call;
use crate::errors::Refusal;

/// Executes a request. It replies once, or refuses before it has replied.
pub(crate) type Apply = fn(&mut Call<'_>) -> Result<(), Refusal>;

/// How a command is executed.
#[derive(Clone, Copy)]
pub(crate) enum Action {
    /// By a function.
    Apply(Apply),
    /// By replying with the values of its keys, together with those of neighbouring reads.
    Read(ReadShape),
    /// By a function, or together with neighbours if they have no options.
    Put(Apply),
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

/// What a command does with its keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Access {
    /// Tells what they hold.
    Read,
    /// Changes them, and tells nothing of what they held.
    Write,
    /// Both.
    ReadWrite,
    /// Reads the first, writes the others.
    FirstRead,
    /// Writes the first, reads the others.
    FirstWritten,
    /// Reads and writes the first, writes the others.
    FirstMoved,
}

/// Which arguments are keys: from `first` to `last` (from the end, if negative) in steps; all 0 if none.
#[derive(Clone, Copy)]
pub(crate) struct Keys {
    pub(crate) first: i64,
    pub(crate) last: i64,
    pub(crate) step: i64,
    pub(crate) access: Access,
}

impl Keys {
    pub(crate) const NONE: Keys = Keys::at(0, 0, 0, Access::Read);
    pub(super) const COPIED: Keys = Keys::at(1, 2, 1, Access::FirstRead);
    pub(super) const MOVED: Keys = Keys::at(1, 2, 1, Access::FirstMoved);
    pub(super) const BITOP: Keys = Keys::at(2, -1, 1, Access::FirstWritten);

    pub(super) const fn at(first: i64, last: i64, step: i64, access: Access) -> Keys {
        Keys { first, last, step, access }
    }

    /// The numbers of the arguments that are keys in a request of `count` arguments, and what is done with each.
    pub(crate) fn positions(self, count: usize) -> impl Iterator<Item = (usize, Access)> {
        let last = if self.last < 0 { count as i64 + self.last } else { self.last.min(count as i64 - 1) };
        let (first, step) = (self.first.max(1) as usize, self.step.max(1) as usize);
        let end = if self.first == 0 { 0 } else { last + 1 };
        (first..end.max(0) as usize).step_by(step).map(move |index| (index, self.access.of(index == first)))
    }
}

impl Access {
    fn of(self, is_first: bool) -> Access {
        match (self, is_first) {
            (Access::FirstRead, true) | (Access::FirstWritten, false) => Access::Read,
            (Access::FirstRead, false) | (Access::FirstWritten, true) | (Access::FirstMoved, false) => Access::Write,
            (Access::FirstMoved, true) => Access::ReadWrite,
            (access, _) => access,
        }
    }

    pub(crate) fn reads(self) -> bool {
        matches!(self, Access::Read | Access::ReadWrite)
    }

    pub(crate) fn writes(self) -> bool {
        matches!(self, Access::Write | Access::ReadWrite)
    }
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
    pub(crate) keys: Keys,
    pub(crate) isolation: Isolation,
    pub(crate) action: Action,
    pub(crate) subcommands: &'static [Command],
    pub(crate) docs: Docs,
}

impl Command {
    pub(super) const fn new(name: &'static str, arity: i64, flags: u32, action: Action) -> Command {
        Command {
            name,
            arity,
            flags,
            categories: category::of_flags(flags),
            keys: Keys::NONE,
            isolation: Isolation::Shared,
            action,
            subcommands: &[],
            docs: Docs { group: "", since: "", summary: "", complexity: "" },
        }
    }

    pub(super) const fn in_categories(self, categories: u32) -> Command {
        Command { categories: self.categories | categories, ..self }
    }

    pub(super) const fn with_keys(self, keys: Keys) -> Command {
        Command { keys, ..self }
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

    /// Whether it answers with messages rather than with a reply, which clients get in any case.
    pub(crate) fn pushes(&self) -> bool {
        matches!(self.name, "subscribe" | "psubscribe" | "ssubscribe" | "unsubscribe" | "punsubscribe" | "sunsubscribe")
    }

    /// The name without that of the command it is a subcommand of.
    pub(crate) fn short_name(&self) -> &'static str {
        self.name.split_once('|').map_or(self.name, |(_, name)| name)
    }
}
