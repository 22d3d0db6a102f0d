//! One user.

use resp::Request;

use super::log::Reason;
use super::password::Hash;
use super::selector::Selector;
use command_table::{Channels, Entry, Keys, Touches, flag, is_open_end};

/// A user with its rights.
#[derive(Clone)]
pub struct User {
    /// The name.
    pub name: String,
    /// Clients may log in as it.
    pub is_enabled: bool,
    /// Any password is right.
    pub needs_no_password: bool,
    /// The hashes of its passwords.
    pub passwords: Vec<Hash>,
    /// Its rights.
    pub selector: Selector,
}

/// A denied operation of a user.
pub struct Denied {
    pub reason: Reason,
    /// The name of the command, key or channel.
    pub object: Vec<u8>,
}

impl User {
    /// Creates a user without any rights.
    pub fn new(name: &str) -> User {
        User {
            name: name.into(),
            is_enabled: false,
            needs_no_password: false,
            passwords: Vec::new(),
            selector: Selector::default(),
        }
    }

    /// Creates the default user, which may do everything and needs no password.
    pub(crate) fn open_default() -> User {
        let mut user = User::new(super::DEFAULT_USER);
        for rule in ["on", "nopass", "~*", "&*", "+@all"] {
            user.apply(rule.as_bytes()).expect("the rules are known");
        }
        user
    }

    pub(crate) fn set_password(&mut self, password: &[u8]) {
        self.passwords.clear();
        self.needs_no_password = password.is_empty();
        if !password.is_empty() {
            self.passwords.push(Hash::of(password));
        }
    }

    pub(crate) fn has_password(&self, password: &[u8]) -> bool {
        let given = Hash::of(password);
        // All hashes are compared, so the time does not depend on which matches.
        self.passwords.iter().fold(self.needs_no_password, |is_right, hash| is_right | hash.is(&given))
    }

    /// Checks whether the user may execute the request.
    #[inline]
    pub fn check(&self, entry: Entry, request: &Request<'_>) -> Result<(), Denied> {
        if self.selector.allows_all() { Ok(()) } else { self.check_rules(entry, request) }
    }

    /// Returns whether the user may run the command, at least with some keys.
    pub fn may_run(&self, entry: Entry) -> bool {
        // Commands needed for logging in are allowed to all users.
        let is_for_all = entry.command.has(flag::NO_AUTH);
        is_for_all || self.selector.all_commands || self.selector.commands.contains(entry.number)
    }

    fn check_rules(&self, entry: Entry, request: &Request<'_>) -> Result<(), Denied> {
        let command = entry.command;
        if !self.may_run(entry) {
            return Err(Denied { reason: Reason::Command, object: command.name.into() });
        }
        let argument = |index| request.argument(index);
        let (reason, refused) = match command.policy.touches {
            Touches::Nothing | Touches::AllKeys | Touches::OthersRequests => return Ok(()),
            Touches::Keys(keys) => (Reason::Key, self.refused_key(keys, request)),
            Touches::Prefix => {
                let first = argument(1);
                (Reason::Key, (!self.selector.allows_reading_from(first, first)).then_some(first))
            }
            Touches::Range => (Reason::Key, self.refused_range(argument(1), argument(2))),
            Touches::Channels(channels) => (Reason::Channel, self.refused_channel(channels, request)),
        };
        refused.map_or(Ok(()), |object| Err(Denied { reason, object: object.to_vec() }))
    }

    fn refused_key<'a>(&self, keys: Keys, request: &Request<'a>) -> Option<&'a [u8]> {
        let mut all = keys.of(request).map(|(index, access)| (request.argument(index), access));
        all.find(|(key, access)| !self.selector.allows_key(key, *access)).map(|(key, _)| key)
    }

    /// A range with an open end matches no pattern except `*`.
    fn refused_range<'a>(&self, first: &'a [u8], last: &'a [u8]) -> Option<&'a [u8]> {
        let end = |argument: &'a [u8]| if is_open_end(argument) { b"" } else { argument };
        (!self.selector.allows_reading_from(end(first), end(last))).then_some(first)
    }

    fn refused_channel<'a>(&self, channels: Channels, request: &Request<'a>) -> Option<&'a [u8]> {
        let count = if channels == Channels::Published { 1 } else { usize::MAX };
        let is_pattern = channels == Channels::PatternsListened;
        request.arguments().take(count).find(|name| !self.selector.allows_channel(name, is_pattern))
    }

    /// Formats the user as a line of an ACL file.
    pub fn line(&self) -> String {
        let mut words = vec![format!("user {}", self.name), if self.is_enabled { "on" } else { "off" }.into()];
        if self.needs_no_password {
            words.push("nopass".into());
        }
        words.extend(self.passwords.iter().map(|hash| format!("#{}", hash.hex())));
        words.push(self.selector.keys_text());
        if !self.selector.all_channels {
            words.push("resetchannels".into());
        }
        words.push(self.selector.channels_text());
        words.push(self.selector.commands_text());
        words.retain(|word| !word.is_empty());
        words.join(" ")
    }
}
