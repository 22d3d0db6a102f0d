//! The keys of a command that is executed beside the event loops (`errands`), so that other commands know whether to wait for it.
//!
//! Keys are compared by the names that clients have for them, whatever the database: a few commands wait that need not.

use std::collections::HashSet;

use resp::Request;

use crate::clients::session::Session;
use crate::table::{self, Entry, Touches, flag};

/// What one request touches, or all that a transaction has waiting.
#[derive(Default)]
pub(crate) struct Claim {
    keys: HashSet<Vec<u8>>,
    /// It looks at keys that it does not name.
    reads_all: bool,
    /// It changes keys that it does not name.
    writes_all: bool,
    /// It changes keys.
    writes: bool,
    /// It is several steps, which others must not see, and between which they must change nothing.
    is_alone: bool,
    /// It changes what every command depends on: rights.
    changes_rights: bool,
}

impl Claim {
    pub(crate) fn of(entry: Entry, request: &Request<'_>, session: &Session) -> Claim {
        let mut claim = Claim::default();
        if session.queues(entry) {
            return claim;
        }
        claim.is_alone = entry.command.runs_alone();
        match &session.transaction {
            Some(transaction) if entry.command.executes() => {
                for index in 0..transaction.requests.len() {
                    let request = transaction.requests.get(index, &[]);
                    table::find(&request).iter().for_each(|entry| claim.add(*entry, &request));
                }
            }
            _ => claim.add(entry, request),
        }
        claim
    }

    fn add(&mut self, entry: Entry, request: &Request<'_>) {
        let writes = entry.command.has(flag::WRITE);
        match entry.command.policy.touches {
            Touches::Keys(keys) => {
                self.keys.extend(keys.of(request).map(|(index, _)| request.argument(index).to_vec()));
            }
            Touches::AllKeys | Touches::Prefix | Touches::Range => {
                self.reads_all = true;
                self.writes_all |= writes;
            }
            Touches::Nothing | Touches::Channels(_) | Touches::OthersRequests => {
                self.changes_rights |= entry.command.runs_alone() && entry.command.name.starts_with("acl|");
            }
        }
        self.writes |= writes;
    }

    fn touches_keys(&self) -> bool {
        self.reads_all || !self.keys.is_empty()
    }

    /// Whether the two must come one after the other.
    pub(crate) fn conflicts(&self, other: &Claim) -> bool {
        if self.changes_rights || other.changes_rights {
            return true;
        }
        let changes_what_it_sees =
            |one: &Claim, other: &Claim| one.writes_all && other.touches_keys() || one.writes && other.reads_all;
        (self.is_alone || other.is_alone)
            && (changes_what_it_sees(self, other)
                || changes_what_it_sees(other, self)
                || (self.writes || other.writes) && !self.keys.is_disjoint(&other.keys))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(words: &[&str]) -> Claim {
        let mut requests = resp::Requests::default();
        requests.push_words(words);
        let request = requests.get(0, &[]);
        let entry = table::find(&request).expect("a command");
        let mut claim = Claim { is_alone: entry.command.runs_alone(), ..Claim::default() };
        claim.add(entry, &request);
        claim
    }

    #[test]
    fn conflicting_commands_wait_for_each_other() {
        let cases: [(&[&str], &[&str], bool); 14] = [
            (&["RENAME", "a", "b"], &["GET", "b"], true),
            (&["RENAME", "a", "b"], &["GET", "c"], false),
            (&["RENAME", "a", "b"], &["KEYS", "*"], true),
            (&["RENAME", "a", "b"], &["PREFIX", "a"], true),
            (&["FLUSHALL"], &["GET", "c"], true),
            (&["FLUSHALL"], &["PING"], false),
            (&["FLUSHALL"], &["PUBLISH", "a", "b"], false),
            (&["WATCH", "a"], &["SET", "a", "1"], true),
            (&["WATCH", "a"], &["GET", "a"], false),
            (&["WATCH", "a"], &["KEYS", "*"], false),
            // Who may listen is decided by nobody else meanwhile.
            (&["ACL", "SETUSER", "ada"], &["SUBSCRIBE", "a"], true),
            (&["ACL", "SETUSER", "ada"], &["GET", "a"], true),
            // Each is one step of the store.
            (&["SETRANGE", "a", "1", "x"], &["SET", "a", "1"], false),
            (&["KEYS", "*"], &["SET", "a", "1"], false),
        ];
        for (one, other, conflict) in cases {
            let (one_claim, other_claim) = (claim(one), claim(other));
            assert_eq!(one_claim.conflicts(&other_claim), conflict, "{one:?} {other:?}");
            assert_eq!(other_claim.conflicts(&one_claim), conflict, "{other:?} {one:?}");
        }
    }
}
