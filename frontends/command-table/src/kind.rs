//! The kinds of commands that are counted separately.

/// A kind of commands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Kind {
    /// Reads of entire values.
    Get,
    /// Puts of entire values.
    Set,
    /// Deletions of keys.
    Delete,
    /// Other changes of keys.
    Update,
    /// Other queries about single keys.
    Read,
    /// Ranges, prefixes, walks.
    Range,
    /// `MULTI`, `EXEC` and the like.
    Transaction,
    /// Channels.
    Message,
    /// Connections and the server itself; also requests that name no command.
    Other,
}

impl Kind {
    /// The number of kinds.
    pub const COUNT: usize = 9;

    /// All kinds, by their numbers.
    pub const ALL: [Kind; Kind::COUNT] = [
        Kind::Get,
        Kind::Set,
        Kind::Delete,
        Kind::Update,
        Kind::Read,
        Kind::Range,
        Kind::Transaction,
        Kind::Message,
        Kind::Other,
    ];

    /// Returns the name in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Get => "get",
            Kind::Set => "set",
            Kind::Delete => "delete",
            Kind::Update => "update",
            Kind::Read => "read",
            Kind::Range => "range",
            Kind::Transaction => "transaction",
            Kind::Message => "message",
            Kind::Other => "other",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_have_their_expected_kind() {
        for (name, kind) in [
            ("get", Kind::Get),
            ("mget", Kind::Get),
            ("set", Kind::Set),
            ("msetnx", Kind::Set),
            ("unlink", Kind::Delete),
            ("getdel", Kind::Update),
            ("incr", Kind::Update),
            ("expire", Kind::Update),
            ("ttl", Kind::Read),
            ("strlen", Kind::Read),
            ("prefix", Kind::Range),
            ("scan", Kind::Range),
            ("exec", Kind::Transaction),
            ("publish", Kind::Message),
            ("ping", Kind::Other),
            ("info", Kind::Other),
        ] {
            assert_eq!(crate::by_name(name.as_bytes()).map(crate::Entry::kind), Some(kind), "{name}");
        }
    }

    #[test]
    fn each_kind_is_at_its_number() {
        for (number, kind) in Kind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, number);
        }
    }
}
