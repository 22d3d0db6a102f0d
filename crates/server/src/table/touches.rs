//! Which keys and channels a command concerns: what ACLs judge, and what `COMMAND` tells of it.

use resp::Request;

/// What a command does with a key, as Redis' key specifications have it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Access {
    /// Tells whether it is there, or of what kind.
    Look,
    /// Tells what it holds.
    Read,
    ReadAndUpdate,
    ReadAndDelete,
    /// Changes it, depending on what it held.
    Update,
    /// Adds to it.
    Extend,
    Overwrite,
    /// Puts it where there was none.
    Create,
    Delete,
}

impl Access {
    /// The words of `COMMAND` for it.
    pub(crate) fn flags(self) -> &'static [&'static str] {
        match self {
            Access::Look => &["RO"],
            Access::Read => &["RO", "access"],
            Access::ReadAndUpdate => &["RW", "access", "update"],
            Access::ReadAndDelete => &["RW", "access", "delete"],
            Access::Update => &["RW", "update"],
            Access::Extend => &["RW", "insert"],
            Access::Overwrite => &["OW", "update"],
            Access::Create => &["OW", "insert"],
            Access::Delete => &["RM", "delete"],
        }
    }

    /// Whether it takes the right to read.
    pub(crate) fn reads(self) -> bool {
        matches!(self, Access::Read | Access::ReadAndUpdate | Access::ReadAndDelete)
    }

    /// Whether it takes the right to write.
    pub(crate) fn writes(self) -> bool {
        !matches!(self, Access::Look | Access::Read)
    }
}

/// Arguments that are keys: from `first` to `last` (from the end, if negative) in steps.
#[derive(Clone, Copy)]
pub(crate) struct Places {
    pub(crate) first: usize,
    pub(crate) last: i64,
    pub(crate) step: usize,
    pub(crate) access: Access,
}

impl Places {
    const fn at(first: usize, last: i64, step: usize, access: Access) -> Places {
        Places { first, last, step, access }
    }

    fn positions(self, count: usize) -> impl Iterator<Item = (usize, Access)> {
        let last = if self.last < 0 { count as i64 + self.last } else { self.last.min(count as i64 - 1) };
        (self.first..(last + 1).max(0) as usize).step_by(self.step).map(move |index| (index, self.access))
    }
}

/// The keys among a command's arguments.
#[derive(Clone, Copy)]
pub(crate) struct Keys {
    pub(crate) first: Places,
    pub(crate) then: Option<Places>,
    /// What a request does with its one key, if that depends on its options.
    pub(crate) varies: Option<fn(&Request<'_>) -> Access>,
}

impl Keys {
    /// The numbers of the arguments that are keys, and what is done with each.
    pub(crate) fn of(self, request: &Request<'_>) -> impl Iterator<Item = (usize, Access)> {
        let varied = self.varies.map(|access_of| access_of(request));
        let count = request.len();
        let places = [Some(self.first), self.then].into_iter().flatten();
        places
            .flat_map(move |places| places.positions(count))
            .map(move |(index, access)| (index, varied.unwrap_or(access)))
    }

    /// First, last and step, as `COMMAND` tells of all places in one.
    pub(crate) fn range(self) -> [i64; 3] {
        let last = self.then.unwrap_or(self.first).last;
        [self.first.first as i64, last, self.first.step as i64]
    }
}

/// Whether an argument of a range stands for the beginning or the end of all keys.
pub(crate) fn is_open_end(argument: &[u8]) -> bool {
    matches!(argument, b"-" | b"+")
}

/// What a command does with channels.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Channels {
    /// All arguments are channels, which it listens to.
    Heard,
    /// All arguments are patterns of channels, which it listens to.
    PatternsHeard,
    /// The first argument is a channel, which it sends to.
    Told,
}

/// What a command concerns that rights are given for.
#[derive(Clone, Copy)]
pub(crate) enum Touches {
    /// It tells of no key, and of nothing that one holds, and changes none. `EXEC` is such a command: what it executes is
    /// judged by itself.
    Nothing,
    Keys(Keys),
    /// It tells of all keys that begin with the first argument. They must all be within one pattern.
    Prefix,
    /// It tells of all keys from the first argument to the second. They must all be within one pattern.
    Range,
    Channels(Channels),
    /// It tells the names or the number of any keys, or changes all of them. As in Redis the right to the command is enough.
    AllKeys,
    /// It tells what others ask for. As in Redis the right to the command is enough; it is an administrator's.
    OthersRequests,
}

impl Touches {
    pub(super) const BITFIELD: Touches = varying(Access::ReadAndUpdate, access_of_bitfield);
    pub(super) const BITOP: Touches = two(Places::at(2, 2, 1, Access::Overwrite), Places::at(3, -1, 1, Access::Read));
    pub(super) const COPY: Touches = two(Places::at(1, 1, 1, Access::Read), Places::at(2, 2, 1, Access::Overwrite));
    pub(super) const LCS: Touches = one(Places::at(1, 2, 1, Access::Read));
    pub(super) const RENAME: Touches = moved_to(Access::Overwrite);
    pub(super) const RENAMENX: Touches = moved_to(Access::Create);
    pub(super) const SET: Touches = varying(Access::ReadAndUpdate, access_of_set);

    /// The keys among its arguments.
    pub(crate) fn keys(self) -> Option<Keys> {
        match self {
            Touches::Keys(keys) => Some(keys),
            _ => None,
        }
    }
}

/// The first argument is a key.
pub(super) const fn key(access: Access) -> Touches {
    one(Places::at(1, 1, 1, access))
}

/// All arguments are keys.
pub(super) const fn keys(access: Access) -> Touches {
    one(Places::at(1, -1, 1, access))
}

/// Keys and values take turns.
pub(super) const fn keys_and_values(access: Access) -> Touches {
    one(Places::at(1, -1, 2, access))
}

/// The argument behind the subcommand's name is a key.
pub(super) const fn subcommand_key(access: Access) -> Touches {
    one(Places::at(2, 2, 1, access))
}

const fn one(first: Places) -> Touches {
    Touches::Keys(Keys { first, then: None, varies: None })
}

const fn two(first: Places, then: Places) -> Touches {
    Touches::Keys(Keys { first, then: Some(then), varies: None })
}

const fn moved_to(access: Access) -> Touches {
    two(Places::at(1, 1, 1, Access::ReadAndDelete), Places::at(2, 2, 1, access))
}

const fn varying(most: Access, access_of: fn(&Request<'_>) -> Access) -> Touches {
    Touches::Keys(Keys { first: Places::at(1, 1, 1, most), then: None, varies: Some(access_of) })
}

/// Only with `GET` does `SET` tell what the key held.
fn access_of_set(request: &Request<'_>) -> Access {
    let tells = request.arguments().skip(2).any(|option| option.eq_ignore_ascii_case(b"get"));
    if tells { Access::ReadAndUpdate } else { Access::Overwrite }
}

/// `BITFIELD` that only gets changes nothing. What cannot be understood is taken for a change.
fn access_of_bitfield(request: &Request<'_>) -> Access {
    let mut rest = request.arguments().skip(1);
    while let Some(operation) = rest.next() {
        let argument_count = if operation.eq_ignore_ascii_case(b"get") {
            2
        } else if operation.eq_ignore_ascii_case(b"overflow") {
            1
        } else {
            return Access::ReadAndUpdate;
        };
        if rest.by_ref().take(argument_count).count() < argument_count {
            return Access::ReadAndUpdate;
        }
    }
    Access::Read
}

#[cfg(test)]
mod tests {
    use resp::Requests;

    use super::*;
    use crate::table::{self, flag};

    fn accesses(line: &str) -> Vec<(usize, Access)> {
        let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        let mut requests = Requests::default();
        requests.push_words(&words);
        let request = requests.get(0, &[]);
        let entry = table::find(&request).unwrap_or_else(|_| panic!("{line} is known"));
        entry.command.policy.touches.keys().map_or(Vec::new(), |keys| keys.of(&request).collect())
    }

    #[test]
    fn keys_are_where_the_row_says() {
        use Access::{Create, Look, Overwrite, Read, ReadAndDelete, ReadAndUpdate};
        for (line, wanted) in [
            ("GET k", vec![(1, Read)]),
            ("MSET a 1 b 2 c 3", vec![(1, Overwrite), (3, Overwrite), (5, Overwrite)]),
            ("BITOP AND d a b", vec![(2, Overwrite), (3, Read), (4, Read)]),
            ("RENAMENX a b", vec![(1, ReadAndDelete), (2, Create)]),
            ("OBJECT ENCODING k", vec![(2, Look)]),
            ("SET k v EX 1", vec![(1, Overwrite)]),
            ("SET k v gEt", vec![(1, ReadAndUpdate)]),
            ("BITFIELD k GET u8 0 OVERFLOW FAIL GET u8 8", vec![(1, Read)]),
            ("BITFIELD k GET u8 0 INCRBY u8 0 1", vec![(1, ReadAndUpdate)]),
            ("BITFIELD k GET u8", vec![(1, ReadAndUpdate)]),
            ("PING hello", vec![]),
        ] {
            assert_eq!(accesses(line), wanted, "{line}");
        }
    }

    /// A new command of these flags must say which keys it concerns, or that all of them.
    #[test]
    fn command_that_reads_or_writes_says_what() {
        // A picture, and functions, of which there are none.
        let is_exempt = |name: &str| name == "lolwut" || name.starts_with("function|");
        for command in table::entries().iter().map(|entry| entry.command) {
            let (name, touches) = (command.name, command.policy.touches);
            let concerns_keys =
                matches!(touches, Touches::Keys(_) | Touches::Prefix | Touches::Range | Touches::AllKeys);
            let has_flag = command.has(flag::READONLY | flag::WRITE) && !is_exempt(name);
            assert!(concerns_keys == has_flag || name == "watch", "{name}");
            assert!(!matches!(touches, Touches::OthersRequests) || command.has(flag::ADMIN), "{name}");
        }
    }
}
