//! The keys and channels that a command uses, for ACL checks and for `COMMAND`.

use resp::Request;

/// The access of a command to a key, as in Redis' key specifications.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// Returns whether it exists, or its type.
    Inspect,
    /// Returns its value.
    Read,
    /// Returns its value and changes it.
    ReadAndUpdate,
    /// Returns its value and deletes it.
    ReadAndDelete,
    /// Changes it depending on its value.
    Update,
    /// Adds to its value.
    Extend,
    /// Replaces its value.
    Overwrite,
    /// Creates it if it does not exist.
    Create,
    /// Removes some of its value.
    Remove,
    /// Deletes it.
    Delete,
}

impl Access {
    /// Returns its flags in `COMMAND`.
    pub fn flags(self) -> &'static [&'static str] {
        match self {
            Access::Inspect => &["RO"],
            Access::Read => &["RO", "access"],
            Access::ReadAndUpdate => &["RW", "access", "update"],
            Access::ReadAndDelete => &["RW", "access", "delete"],
            Access::Update => &["RW", "update"],
            Access::Extend => &["RW", "insert"],
            Access::Overwrite => &["OW", "update"],
            Access::Create => &["OW", "insert"],
            Access::Remove => &["RW", "delete"],
            Access::Delete => &["RM", "delete"],
        }
    }

    /// Returns whether it needs the read permission.
    pub fn reads(self) -> bool {
        matches!(self, Access::Read | Access::ReadAndUpdate | Access::ReadAndDelete)
    }

    /// Returns whether it needs the write permission.
    pub fn writes(self) -> bool {
        !matches!(self, Access::Inspect | Access::Read)
    }
}

/// Arguments that are keys: from `first` to `last` (from the end if negative) in steps.
#[derive(Clone, Copy)]
pub struct Places {
    /// The index of the first key.
    pub first: usize,
    /// The index of the last key; from the end if negative.
    pub last: i64,
    /// The distance between keys.
    pub step: usize,
    /// The access to each of them.
    pub access: Access,
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
pub struct Keys {
    /// The first keys.
    pub first: Places,
    /// Further keys with another access.
    pub then: Option<Places>,
    /// The access to its only key, if it depends on the request's options.
    pub varies: Option<fn(&Request<'_>) -> Access>,
    /// The index of the argument that counts the keys after it. A key before it is always there.
    pub counted: Option<usize>,
    /// The keys are the first half of the arguments after the option `STREAMS`, which is at this index or later.
    pub streams: Option<usize>,
    /// Finds a further key, which is overwritten, if the request's options name one.
    pub stored: Option<fn(&Request<'_>) -> Option<usize>>,
}

impl Keys {
    /// Returns the indices of the arguments that are keys, with the access to each.
    pub fn of(self, request: &Request<'_>) -> impl Iterator<Item = (usize, Access)> {
        let varied = self.varies.map(|access_of| access_of(request));
        let stored = self.stored.and_then(|stored_by| stored_by(request)).map(|index| (index, Access::Overwrite));
        let (mut first, mut count) = (self.first, request.len());
        if self.streams.is_some() {
            first.first = streams_option(request).unwrap_or(count) + 1;
            count = first.first + count.saturating_sub(first.first) / 2;
        }
        if let Some(index) = self.counted.filter(|index| *index < count) {
            let keys = resp::parse_integer(request.argument(index)).and_then(|keys| usize::try_from(keys).ok());
            // A command refuses a wrong number, and then uses no key.
            count = keys.and_then(|keys| keys.checked_add(index + 1)).filter(|end| *end <= count).unwrap_or(0);
        }
        let places = [Some(first), self.then].into_iter().flatten();
        places
            .flat_map(move |places| places.positions(count))
            .map(move |(index, access)| (index, varied.unwrap_or(access)))
            .chain(stored)
    }

    /// Returns first, last and step, the summary in `COMMAND`.
    pub fn range(self) -> [i64; 3] {
        if self.streams.is_some() {
            return [0; 3];
        }
        let last = match self.counted {
            Some(count) if self.first.first > count => return [0; 3],
            Some(_) => self.first.last,
            None => self.then.unwrap_or(self.first).last,
        };
        [self.first.first as i64, last, self.first.step as i64]
    }
}

/// Returns whether an argument of a range means the beginning or end of all keys.
pub fn is_open_end(argument: &[u8]) -> bool {
    matches!(argument, b"-" | b"+")
}

/// The use of channels by a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Channels {
    /// All arguments are channels to subscribe to.
    Listened,
    /// All arguments are channel patterns to subscribe to.
    PatternsListened,
    /// The first argument is a channel to publish to.
    Published,
}

/// The keys and channels of a command that need permissions.
#[derive(Clone, Copy)]
pub enum Touches {
    /// It returns and changes no data of keys. `EXEC` is such a command: the queued requests are checked separately.
    Nothing,
    /// The keys among its arguments.
    Keys(Keys),
    /// It returns all keys that begin with the first argument. One permitted pattern must cover them all.
    Prefix,
    /// It returns all keys from the first argument to the second. One permitted pattern must cover them all.
    Range,
    /// The channels among its arguments.
    Channels(Channels),
    /// It returns the names or number of any keys, or changes all of them. As in Redis, the permission for the command
    /// is sufficient.
    AllKeys,
    /// It returns other clients' requests. As in Redis, the permission for the command is sufficient; it is
    /// administrative.
    OthersRequests,
}

impl Touches {
    pub(crate) const BITFIELD: Touches = varying(Access::ReadAndUpdate, access_of_bitfield);
    pub(crate) const BITOP: Touches = two(Places::at(2, 2, 1, Access::Overwrite), Places::at(3, -1, 1, Access::Read));
    pub(crate) const COPY: Touches = two(Places::at(1, 1, 1, Access::Read), Places::at(2, 2, 1, Access::Overwrite));
    pub(crate) const LCS: Touches = one(Places::at(1, 2, 1, Access::Read));
    pub(crate) const LMOVE: Touches = moved_to(Access::Extend);
    pub(crate) const RENAME: Touches = moved_to(Access::Overwrite);
    pub(crate) const RENAMENX: Touches = moved_to(Access::Create);
    pub(crate) const SMOVE: Touches =
        two(Places::at(1, 1, 1, Access::ReadAndDelete), Places::at(2, 2, 1, Access::Extend));
    pub(crate) const SORT: Touches = Touches::Keys(Keys {
        first: Places::at(1, 1, 1, Access::Read),
        then: None,
        varies: None,
        counted: None,
        streams: None,
        stored: Some(stored_by_sort),
    });
    pub(crate) const STORED_FROM_KEYS: Touches =
        two(Places::at(1, 1, 1, Access::Overwrite), Places::at(2, -1, 1, Access::Read));
    pub(crate) const RANGESTORE: Touches =
        two(Places::at(1, 1, 1, Access::Overwrite), Places::at(2, 2, 1, Access::Read));
    pub(crate) const SET: Touches = varying(Access::ReadAndUpdate, access_of_set);

    /// Returns the keys among its arguments.
    pub fn keys(self) -> Option<Keys> {
        match self {
            Touches::Keys(keys) => Some(keys),
            _ => None,
        }
    }
}

/// The first argument is a key.
pub(crate) const fn key(access: Access) -> Touches {
    one(Places::at(1, 1, 1, access))
}

/// All arguments are keys.
pub(crate) const fn keys(access: Access) -> Touches {
    one(Places::at(1, -1, 1, access))
}

/// All arguments but the last one are keys.
pub(crate) const fn keys_but_last(access: Access) -> Touches {
    one(Places::at(1, -2, 1, access))
}

/// The second argument counts the keys, which follow it.
pub(crate) const fn counted_keys(access: Access) -> Touches {
    counted_keys_from(2, access)
}

/// This argument counts the keys, which follow it.
pub(crate) const fn counted_keys_from(index: usize, access: Access) -> Touches {
    let first = Places::at(index + 1, -1, 1, access);
    Touches::Keys(Keys { first, then: None, varies: None, counted: Some(index), streams: None, stored: None })
}

/// The first argument is a key that is overwritten; the second one counts the keys that are read.
pub(crate) const fn stored_from_counted_keys() -> Touches {
    let (first, then) = (Places::at(1, 1, 1, Access::Overwrite), Places::at(3, -1, 1, Access::Read));
    Touches::Keys(Keys { first, then: Some(then), varies: None, counted: Some(2), streams: None, stored: None })
}

/// The keys follow the option `STREAMS`, which is this argument or a later one. As many ids follow them.
pub(crate) const fn streams(from: usize, access: Access) -> Touches {
    let first = Places::at(0, -1, 1, access);
    Touches::Keys(Keys { first, then: None, varies: None, counted: None, streams: Some(from), stored: None })
}

/// Returns the index of the option `STREAMS` of XREAD or XREADGROUP. A group or a consumer may have that name, too.
fn streams_option(request: &Request<'_>) -> Option<usize> {
    let mut index = 1;
    while index < request.len() {
        index += match request.argument(index).to_ascii_lowercase().as_slice() {
            b"streams" => return Some(index),
            b"block" | b"count" => 2,
            b"group" => 3,
            b"noack" => 1,
            _ => return None, // The command refuses it, and uses no key.
        };
    }
    None
}

/// Keys and values alternate.
pub(crate) const fn keys_and_values(access: Access) -> Touches {
    one(Places::at(1, -1, 2, access))
}

/// The argument after the subcommand's name is a key.
pub(crate) const fn subcommand_key(access: Access) -> Touches {
    one(Places::at(2, 2, 1, access))
}

const fn one(first: Places) -> Touches {
    Touches::Keys(Keys { first, then: None, varies: None, counted: None, streams: None, stored: None })
}

const fn two(first: Places, then: Places) -> Touches {
    Touches::Keys(Keys { first, then: Some(then), varies: None, counted: None, streams: None, stored: None })
}

const fn moved_to(access: Access) -> Touches {
    two(Places::at(1, 1, 1, Access::ReadAndDelete), Places::at(2, 2, 1, access))
}

const fn varying(most: Access, access_of: fn(&Request<'_>) -> Access) -> Touches {
    let first = Places::at(1, 1, 1, most);
    Touches::Keys(Keys { first, then: None, varies: Some(access_of), counted: None, streams: None, stored: None })
}

/// `SET` returns the previous value only with `GET`.
fn access_of_set(request: &Request<'_>) -> Access {
    let returns_old = request.arguments().skip(2).any(|option| option.eq_ignore_ascii_case(b"get"));
    if returns_old { Access::ReadAndUpdate } else { Access::Overwrite }
}

/// Returns the index of the key after the last `STORE` of `SORT`, whose options are read as `SORT` itself reads them: a
/// key or a pattern may have the name of an option.
fn stored_by_sort(request: &Request<'_>) -> Option<usize> {
    let (mut index, mut stored) = (2, None);
    while index < request.len() {
        let option = request.argument(index);
        if option.eq_ignore_ascii_case(b"limit") {
            index += 2;
        } else if option.eq_ignore_ascii_case(b"get") || option.eq_ignore_ascii_case(b"by") {
            index += 1;
        } else if option.eq_ignore_ascii_case(b"store") && index + 1 < request.len() {
            index += 1;
            stored = Some(index);
        }
        index += 1;
    }
    stored
}

/// A `BITFIELD` with only GET changes nothing. Invalid options count as a change.
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
    use crate::flag;

    fn accesses(line: &str) -> Vec<(usize, Access)> {
        let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        let mut requests = Requests::default();
        requests.push_words(&words);
        let request = requests.get(0, &[]);
        let entry = crate::find(&request).unwrap_or_else(|_| panic!("{line} is known"));
        entry.command.policy.touches.keys().map_or(Vec::new(), |keys| keys.of(&request).collect())
    }

    #[test]
    fn keys_are_where_the_row_says() {
        use Access::{Create, Inspect, Overwrite, Read, ReadAndDelete, ReadAndUpdate};
        for (line, wanted) in [
            ("GET k", vec![(1, Read)]),
            ("MSET a 1 b 2 c 3", vec![(1, Overwrite), (3, Overwrite), (5, Overwrite)]),
            ("BITOP AND d a b", vec![(2, Overwrite), (3, Read), (4, Read)]),
            ("RENAMENX a b", vec![(1, ReadAndDelete), (2, Create)]),
            ("OBJECT ENCODING k", vec![(2, Inspect)]),
            ("SET k v EX 1", vec![(1, Overwrite)]),
            ("SET k v gEt", vec![(1, ReadAndUpdate)]),
            ("BITFIELD k GET u8 0 OVERFLOW FAIL GET u8 8", vec![(1, Read)]),
            ("BITFIELD k GET u8 0 INCRBY u8 0 1", vec![(1, ReadAndUpdate)]),
            ("BITFIELD k GET u8", vec![(1, ReadAndUpdate)]),
            ("PING hello", vec![]),
            ("EVAL text 2 a b c", vec![(3, ReadAndUpdate), (4, ReadAndUpdate)]),
            ("EVALSHA_RO hash 1 a b", vec![(3, Read)]),
            ("EVAL text 0 a", vec![]),
            ("EVAL text 3 a b", vec![]),
            ("EVAL text -1 a b", vec![]),
            ("EVAL text 9223372036854775807 a b", vec![]),
            ("ZUNION 2 a b", vec![(2, Read), (3, Read)]),
            ("ZUNIONSTORE d 2 a b WEIGHTS 1 2", vec![(1, Overwrite), (3, Read), (4, Read)]),
            ("ZUNIONSTORE d 3 a b", vec![]),
            ("ZRANGESTORE d s 0 1", vec![(1, Overwrite), (2, Read)]),
            ("SORT a BY store GET store LIMIT 0 store", vec![(1, Read)]),
            ("SORT a STORE b DESC sToRe c", vec![(1, Read), (6, Overwrite)]),
            ("SORT a STORE", vec![(1, Read)]),
            ("SORT a STORE by STORE c", vec![(1, Read), (5, Overwrite)]),
            ("SORT_RO a STORE b", vec![(1, Read)]),
            ("ZMPOP 2 a b MIN", vec![(2, ReadAndDelete), (3, ReadAndDelete)]),
            ("XREAD COUNT 1 sTreams streams b 0 0", vec![(4, Read), (5, Read)]),
            ("XREAD STREAMS a b 0", vec![(2, Read)]),
            ("XREAD COUNT 1 BLOCK 0", vec![]),
            ("XREADGROUP GROUP streams c STREAMS a >", vec![(5, Read)]),
            ("XREADGROUP COUNT 1 GROUP streams streams NOACK STREAMS a b > >", vec![(8, Read), (9, Read)]),
            ("XREADGROUP GROUP g c KEYS STREAMS a >", vec![]),
        ] {
            assert_eq!(accesses(line), wanted, "{line}");
        }
    }

    /// A new command with these flags must declare the keys that it uses, or all keys.
    #[test]
    fn commands_declare_their_keys() {
        // It draws a picture, or refers to functions, which do not exist here.
        let is_exempt = |name: &str| name == "lolwut" || name.starts_with("function|");
        for command in crate::entries().iter().map(|entry| entry.command) {
            let (name, touches) = (command.name, command.policy.touches);
            let concerns_keys =
                matches!(touches, Touches::Keys(_) | Touches::Prefix | Touches::Range | Touches::AllKeys);
            let has_flag = command.has(flag::READONLY | flag::WRITE | flag::SCRIPT) && !is_exempt(name);
            assert!(concerns_keys == has_flag || name == "watch", "{name}");
            assert!(!matches!(touches, Touches::OthersRequests) || command.has(flag::ADMIN), "{name}");
        }
    }
}
