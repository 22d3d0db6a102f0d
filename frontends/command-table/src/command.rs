//! The table entry of one command.

use resp::Request;

use crate::category;
use crate::flag;
use crate::needs::Needs;
use crate::policy::{Policy, When};
use crate::touches::{Access, Channels, Touches};

/// The way in which a command is executed. Its function is not part of the table: the dispatcher finds it by the
/// command's index.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// By its function.
    Apply,
    /// By its function, or in a group with adjacent reads: it replies with the values of its keys.
    Read(ReadShape),
    /// By its function, or in a group with adjacent writes if they have no options.
    Put,
    /// By its function, or in a group with adjacent requests of the same command: it changes only the key that is its
    /// first argument.
    Update,
    /// By its function, or in a group with adjacent changes, which are written in one step: it changes only the
    /// collection whose key is its first argument, and waits for nothing.
    Change,
    /// By one of its subcommands.
    Subcommands,
}

/// The reply of a read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum ReadShape {
    /// The value of its only key.
    Value,
    /// An array of values.
    Array,
}

/// The commands that may run concurrently with a command.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Isolation {
    /// With all commands that are not `Alone`: it is a single operation of the store.
    Shared,
    /// With none: it has several steps that other commands must not see.
    Alone,
}

/// The data of `COMMAND DOCS`.
#[derive(Clone, Copy)]
pub struct Docs {
    /// The group of commands, as in Redis.
    pub group: &'static str,
    /// The version of Redis that introduced it; of hikv, if Redis has no such command.
    pub since: &'static str,
    /// One sentence.
    pub summary: &'static str,
    /// The growth of its execution time.
    pub complexity: &'static str,
}

/// A command or subcommand.
pub struct Command {
    /// In lower case; `command|subcommand` for a subcommand.
    pub name: &'static str,
    /// The number of arguments including the name; if negative, the minimum number.
    pub arity: i64,
    /// Bits of [`flag`].
    pub flags: u32,
    /// Bits of [`category`].
    pub categories: u32,
    /// The properties that no row omits.
    pub policy: Policy,
    /// The commands that may run concurrently.
    pub isolation: Isolation,
    /// The way in which it is executed.
    pub action: Action,
    /// The subcommands; empty if it has none.
    pub subcommands: &'static [Command],
    /// The arguments in the notation of [`arguments`](crate::arguments).
    pub(crate) syntax: &'static str,
    /// The documentation.
    pub docs: Docs,
}

impl Command {
    /// Creates the row of a command that its function executes.
    pub(crate) const fn new(name: &'static str, arity: i64, flags: u32, policy: Policy) -> Command {
        Command {
            name,
            arity,
            flags,
            categories: category::of_flags(flags),
            policy,
            isolation: Isolation::Shared,
            action: Action::Apply,
            subcommands: &[],
            syntax: "",
            docs: Docs { group: "", since: "", summary: "", complexity: "" },
        }
    }

    /// Has it executed in another way.
    pub(crate) const fn grouped(self, action: Action) -> Command {
        Command { action, ..self }
    }

    /// Has only its subcommands executed.
    pub(crate) const fn containing(self, subcommands: &'static [Command]) -> Command {
        Command { action: Action::Subcommands, subcommands, ..self }
    }

    pub(crate) const fn syntax(self, syntax: &'static str) -> Command {
        Command { syntax, ..self }
    }

    pub(crate) const fn in_categories(self, categories: u32) -> Command {
        Command { categories: self.categories | categories, ..self }
    }

    pub(crate) const fn alone(self) -> Command {
        Command { isolation: Isolation::Alone, ..self }
    }

    pub(crate) const fn with_subcommands(self, subcommands: &'static [Command]) -> Command {
        Command { subcommands, ..self }
    }

    pub(crate) const fn documented(
        self,
        group: &'static str,
        since: &'static str,
        summary: &'static str,
        complexity: &'static str,
    ) -> Command {
        Command { docs: Docs { group, since, summary, complexity }, ..self }
    }

    /// Returns whether a request may have `count` arguments.
    pub fn accepts(&self, count: usize) -> bool {
        let count = count as i64;
        if self.arity < 0 { count >= -self.arity } else { count == self.arity }
    }

    /// Returns whether it has one of these flags.
    pub fn has(&self, flags: u32) -> bool {
        self.flags & flags != 0
    }

    /// Returns whether it needs exclusive access.
    pub fn runs_alone(&self) -> bool {
        self.isolation == Isolation::Alone
    }

    /// Returns whether it only replies with values of keys.
    pub fn is_read(&self) -> bool {
        matches!(self.action, Action::Read(_))
    }

    /// Returns the indices of a request's arguments that are keys, with the access to each.
    pub fn keys_of(&self, request: &Request<'_>) -> impl Iterator<Item = (usize, Access)> {
        self.policy.touches.keys().into_iter().flat_map(move |keys| keys.of(request))
    }

    /// Returns whether it answers with messages instead of a reply; clients receive these even if they want no replies.
    pub fn pushes(&self) -> bool {
        self.policy.when == When::Pushes
    }

    /// Returns whether it executes the queued transaction.
    pub fn executes(&self) -> bool {
        self.policy.when == When::Executes
    }

    /// Returns whether it may change which messages its client receives, or in which form. A transaction may consist of
    /// such commands.
    pub fn may_change_messages(&self) -> bool {
        self.executes() || self.pushes() || matches!(self.name, "client|tracking" | "hello" | "monitor" | "reset")
    }

    /// Returns whether its client may receive fewer messages afterwards.
    #[inline]
    pub fn ends_messages(&self) -> bool {
        self.policy.when.may_end_messages()
            && matches!(self.name, "punsubscribe" | "reset" | "sunsubscribe" | "unsubscribe")
    }

    /// Returns whether it runs a script, which may use keys that the request does not name.
    pub fn runs_scripts(&self) -> bool {
        self.has(flag::SCRIPT)
    }

    /// Returns whether it may read keys that the request does not name.
    pub fn reads_unnamed_keys(&self) -> bool {
        self.runs_scripts() || matches!(self.name, "sort" | "sort_ro")
    }

    /// Returns whether it may change keys that the request does not name.
    pub fn runs_writing_scripts(&self) -> bool {
        self.has(flag::SCRIPT) && !self.has(flag::READONLY)
    }

    /// Returns whether other clients may see its effects: it writes, or sends messages.
    pub fn has_visible_effects(&self) -> bool {
        self.has(flag::WRITE)
            || self.runs_writing_scripts()
            || matches!(self.policy.touches, Touches::Channels(Channels::Published))
    }

    /// Returns whether it may make a collection.
    #[inline]
    pub fn makes_collections(&self) -> bool {
        self.policy.needs == Needs::Collections && self.has(flag::DENYOOM)
    }

    /// Returns whether it stores a value in the form of `DUMP`, of any type.
    #[inline]
    pub fn restores(&self) -> bool {
        self.policy.needs == Needs::ConditionsOrCollections
    }

    /// Returns whether it works only on strings.
    #[inline]
    pub fn is_of_strings(&self) -> bool {
        self.categories & (category::STRING | category::BITMAP) != 0
    }

    /// Returns true for `CLIENT` and its subcommands.
    pub fn is_about_clients(&self) -> bool {
        self.name.starts_with("client")
    }

    /// Returns a subcommand's name without that of its command.
    pub fn short_name(&self) -> &'static str {
        self.name.split_once('|').map_or(self.name, |(_, name)| name)
    }
}
