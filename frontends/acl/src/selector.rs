//! The rights of one selector: commands, keys, channels.

use command_table::{self as table, Access, Command};
use resp::glob;

/// A set of commands and subcommands, by their table indices.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct CommandSet {
    bits: Vec<u64>,
}

impl CommandSet {
    pub fn contains(&self, number: usize) -> bool {
        self.bits.get(number / 64).is_some_and(|word| word >> (number % 64) & 1 != 0)
    }

    /// Adds or removes the commands for which `is_meant` returns true.
    pub(crate) fn set_where(&mut self, allowed: bool, is_meant: impl Fn(&Command) -> bool) {
        self.bits.resize(table::entries().len().div_ceil(64), 0);
        for entry in table::entries().iter().filter(|entry| is_meant(entry.command)) {
            let bit = 1 << (entry.number % 64);
            let word = &mut self.bits[entry.number / 64];
            *word = if allowed { *word | bit } else { *word & !bit };
        }
    }
}

/// A pattern of keys that a user may read, write or both.
#[derive(Clone, PartialEq, Eq)]
pub struct KeyPattern {
    pub(crate) pattern: Vec<u8>,
    pub(crate) reads: bool,
    pub(crate) writes: bool,
}

impl KeyPattern {
    /// Returns the prefix if the pattern is a prefix followed by a star.
    fn beginning(&self) -> Option<&[u8]> {
        let is_special = |byte: &u8| matches!(byte, b'*' | b'?' | b'[' | b'\\');
        self.pattern.strip_suffix(b"*").filter(|beginning| !beginning.iter().any(is_special))
    }

    pub fn text(&self) -> String {
        let pattern = String::from_utf8_lossy(&self.pattern);
        match (self.reads, self.writes) {
            (true, true) => format!("~{pattern}"),
            (true, false) => format!("%R~{pattern}"),
            _ => format!("%W~{pattern}"),
        }
    }
}

/// The rights granted by one set of rules.
#[derive(Clone, Default)]
pub struct Selector {
    pub commands: CommandSet,
    /// The command rules in their given order, without those that a later rule has undone.
    pub command_rules: Vec<String>,
    pub all_commands: bool,
    pub keys: Vec<KeyPattern>,
    pub all_keys: bool,
    pub channels: Vec<Vec<u8>>,
    pub all_channels: bool,
}

impl Selector {
    /// Returns whether it allows everything.
    pub fn allows_all(&self) -> bool {
        self.all_commands && self.all_keys && self.all_channels
    }

    /// Returns whether the access to a key is allowed. As in Redis, a single pattern must grant all the rights.
    pub fn allows_key(&self, key: &[u8], access: Access) -> bool {
        let gives = |allowed: &&KeyPattern| (allowed.reads || !access.reads()) && (allowed.writes || !access.writes());
        self.all_keys || self.keys.iter().filter(gives).any(|allowed| glob::matches(&allowed.pattern, key))
    }

    /// Returns whether all keys from `first` to `last`, or with one of them as prefix, may be read. A single pattern
    /// must cover all of them: a common prefix of both, followed by a star.
    pub fn allows_reading_from(&self, first: &[u8], last: &[u8]) -> bool {
        let has_all = |allowed: &KeyPattern| {
            allowed.beginning().is_some_and(|beginning| first.starts_with(beginning) && last.starts_with(beginning))
        };
        self.all_keys || self.keys.iter().any(|allowed| allowed.reads && has_all(allowed))
    }

    /// Returns whether a channel may be used; a pattern only if the same pattern is allowed literally.
    pub fn allows_channel(&self, name: &[u8], is_pattern: bool) -> bool {
        let allows = |allowed: &Vec<u8>| if is_pattern { allowed == name } else { glob::matches(allowed, name) };
        self.all_channels || self.channels.iter().any(allows)
    }

    /// Formats the command rules as in listings.
    pub fn commands_text(&self) -> String {
        let first = if self.command_rules.first().is_some_and(|rule| rule == "+@all") { vec![] } else { vec!["-@all"] };
        first.into_iter().chain(self.command_rules.iter().map(String::as_str)).collect::<Vec<_>>().join(" ")
    }

    pub fn keys_text(&self) -> String {
        if self.all_keys {
            return "~*".into();
        }
        self.keys.iter().map(KeyPattern::text).collect::<Vec<_>>().join(" ")
    }

    pub fn channels_text(&self) -> String {
        if self.all_channels {
            return "&*".into();
        }
        self.channels.iter().map(|name| format!("&{}", String::from_utf8_lossy(name))).collect::<Vec<_>>().join(" ")
    }
}
