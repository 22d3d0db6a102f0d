//! The set of keys that a background job (`background`) uses, so that other commands know whether to wait for the job.
//!
//! Keys are compared by their client-visible names, whatever the database, so a few commands wait unnecessarily.

use std::collections::HashSet;

use resp::Request;

use super::needs::makes_collections;
use crate::clients::session::Session;
use command_table::{self as table, Entry, Touches, flag};

/// The keys that one request uses, or all requests of a transaction.
#[derive(Default)]
pub(crate) struct Claim {
    keys: HashSet<Vec<u8>>,
    /// Reads keys that it does not name.
    reads_all: bool,
    /// Changes keys that it does not name.
    writes_all: bool,
    /// Changes keys.
    writes: bool,
    /// Consists of several steps that other commands must neither see nor interleave with.
    is_alone: bool,
    /// Decides which commands may be executed at all, because it changes access rights, or disconnects or pauses
    /// clients. After its reply, no command that it forbids is running or starts.
    decides_for_all: bool,
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
                let decides = || matches!(entry.command.name, "client|kill" | "client|pause") || changes_rights(entry);
                self.decides_for_all |= entry.command.runs_alone() && decides();
            }
        }
        self.reads_all |= entry.command.reads_unnamed_keys();
        self.writes_all |= entry.command.runs_writing_scripts();
        self.writes |= writes || self.writes_all;
    }

    /// Returns the claim for a background job. Its keys are its own if they may be collections, or become the first
    /// ones, because the job holds no locks (`keyspace::collections`).
    pub(crate) fn of_job(entry: Entry, request: &Request<'_>, session: &Session, has_collections: bool) -> Claim {
        let claim = Claim::of(entry, request, session);
        let has_keys = entry.command.keys_of(request).next().is_some();
        let may_be_collections = has_collections || makes_collections(entry, request);
        Claim { is_alone: claim.is_alone || has_keys && may_be_collections, ..claim }
    }

    fn touches_keys(&self) -> bool {
        self.reads_all || !self.keys.is_empty()
    }

    /// Returns whether the two must not run at the same time.
    pub(crate) fn conflicts(&self, other: &Claim) -> bool {
        if self.decides_for_all || other.decides_for_all {
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

fn changes_rights(entry: Entry) -> bool {
    entry.command.name.starts_with("acl|")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    /// A loop that does not know of the first collection yet would change it at the same time.
    #[test]
    fn background_job_has_keys_of_collections_alone() {
        let (server, _dir) = testing::server();
        let session = testing::session(server.shared());
        let other = claim(&["HSET", "k", "f", "v"]);
        for (words, has_collections, conflicts) in [
            (&["HSET", "k", "f", "v"][..], false, true),
            (&["LPUSH", "k", "v"], false, true),
            (&["APPEND", "k", "v"], false, false),
            (&["APPEND", "k", "v"], true, true),
            (&["HGETALL", "k"], true, true),
            (&["HGETALL", "other"], true, false),
            (&["PING"], true, false),
        ] {
            let mut requests = resp::Requests::default();
            requests.push_words(words);
            let request = requests.get(0, &[]);
            let entry = table::find(&request).expect("a command");
            let claim = Claim::of_job(entry, &request, &session, has_collections);
            assert_eq!(claim.conflicts(&other), conflicts, "{words:?} {has_collections}");
        }
    }

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
        let cases: [(&[&str], &[&str], bool); 23] = [
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
            // A script may use keys that its request does not name.
            (&["EVAL", "text", "1", "a"], &["GET", "b"], true),
            (&["EVAL", "text", "1", "a"], &["PING"], false),
            (&["EVAL_RO", "text", "1", "a"], &["GET", "b"], false),
            (&["EVAL_RO", "text", "1", "a"], &["SET", "b", "1"], true),
            (&["SORT", "a", "BY", "*"], &["SET", "b", "1"], true),
            (&["SORT_RO", "a", "GET", "*"], &["GET", "b"], false),
            // No other command may change subscription rights at the same time.
            (&["ACL", "SETUSER", "ada"], &["SUBSCRIBE", "a"], true),
            (&["ACL", "SETUSER", "ada"], &["GET", "a"], true),
            (&["SET", "a", "1"], &["CLIENT", "PAUSE", "100"], true),
            (&["SET", "a", "1"], &["CLIENT", "KILL", "ID", "1"], true),
            (&["SET", "a", "1"], &["CLIENT", "LIST"], false),
            // Each is a single operation of the store.
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
