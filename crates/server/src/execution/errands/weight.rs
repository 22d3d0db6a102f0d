//! How long a request will take, as far as that can be told before it is executed.
//!
//! The estimate is in bytes that are copied, or in work that takes about as long. A transaction is weighed as a whole, by what the
//! keys hold before it. That suffices: the first of its commands that meets or makes a long value finds only values from before the
//! transaction, so this command is seen to be long.

use resp::Request;

use super::errand::Way;
use crate::clients::session::{Session, Transaction};
use crate::keyspace::database::Database;
use crate::shared::Shared;
use crate::table::{self, Entry, Takes, Touches, flag};

/// From here on a request takes long: several milliseconds.
const LONG_BYTES_MIN: u64 = 8 << 20;

/// As many keys as a loop may look at.
const KEY_COUNT_MAX: u64 = 1 << 14;

/// More than any number of bytes.
const FOR_LONG: u64 = u64::MAX;

/// How the request is done if it takes long, and the client may wait for it.
#[inline]
pub(crate) fn way_of(entry: Entry, request: &Request<'_>, session: &Session, shared: &Shared) -> Option<Way> {
    let is_now = !session.queues(entry);
    if !session.may_be_away {
        return None;
    }
    if is_now && entry.command.policy.takes.is_apart(request) {
        return Some(Way::Apart);
    }
    let is_long = is_long_itself(request) || is_now && is_long(entry, request, session, shared);
    is_long.then_some(Way::Queued)
}

/// Whether the request itself is long, so that even to keep it for later takes long.
#[inline]
fn is_long_itself(request: &Request<'_>) -> bool {
    request.span_bytes() as u64 >= LONG_BYTES_MIN
}

/// Whether to execute the request takes long.
#[inline]
fn is_long(entry: Entry, request: &Request<'_>, session: &Session, shared: &Shared) -> bool {
    let weight = match &session.transaction {
        Some(transaction) if entry.command.executes() => of_transaction(transaction, session.db, shared),
        _ => of_request(entry, request, session.db, shared),
    };
    weight >= LONG_BYTES_MIN
}

fn of_transaction(transaction: &Transaction, mut db: Database, shared: &Shared) -> u64 {
    let requests = (0..transaction.requests.len()).map(|index| transaction.requests.get(index, &[]));
    let (mut sum, mut clears) = (0_u64, false);
    for request in requests {
        let Ok(entry) = table::find(&request) else { continue };
        clears |= entry.command.has(flag::WRITE) && matches!(entry.command.policy.touches, Touches::AllKeys);
        if entry.command.name == "select" {
            db = resp::parse_integer(request.argument(1)).and_then(Database::of).unwrap_or(db);
        }
        let weight = if entry.command.policy.takes.is_apart(&request) {
            FOR_LONG
        } else {
            of_request(entry, &request, db, shared)
        };
        sum = sum.saturating_add(weight).saturating_add(request.span_bytes() as u64);
        if sum >= LONG_BYTES_MIN {
            break;
        }
    }
    // What it deletes goes with what it puts as one batch, key by key.
    if clears && shared.keyspace.store.len().is_ok_and(|count| count > KEY_COUNT_MAX) { FOR_LONG } else { sum }
}

fn of_request(entry: Entry, request: &Request<'_>, db: Database, shared: &Shared) -> u64 {
    let values = || entry.command.keys_of(request).map(|(index, _)| held_bytes(request.argument(index), db, shared));
    let number = |index: usize| resp::parse_integer(request.argument(index)).map_or(0, |number| number.max(0) as u64);
    let held = || values().fold(0, u64::saturating_add);
    match entry.command.policy.takes {
        Takes::Values => held(),
        Takes::ValuesIf(option) if has_option(request, option) => held(),
        Takes::Bytes(index) => number(index).max(held()),
        Takes::Bits(index) => (number(index) / 8).max(held()),
        Takes::Product => values().fold(1, u64::saturating_mul),
        Takes::Keys => FOR_LONG,
        Takes::KeysOfDatabases if shared.keyspace.databases.is_stored() => FOR_LONG,
        Takes::Ranges if limit_of(request).is_none_or(|limit| limit > KEY_COUNT_MAX) => FOR_LONG,
        Takes::Moment
        | Takes::ValuesIf(_)
        | Takes::KeysOfDatabases
        | Takes::Ranges
        | Takes::Apart
        | Takes::ApartIf(_) => 0,
    }
}

/// The length of what a key holds; 0 if that cannot be told.
fn held_bytes(key: &[u8], db: Database, shared: &Shared) -> u64 {
    let reader = shared.keyspace.store.reader(shared.keyspace.namespace(db).raw(key));
    reader.ok().flatten().map_or(0, |reader| reader.len_bytes())
}

fn has_option(request: &Request<'_>, option: &str) -> bool {
    request.arguments().skip(2).any(|argument| argument.eq_ignore_ascii_case(option.as_bytes()))
}

fn limit_of(request: &Request<'_>) -> Option<u64> {
    let mut arguments = request.arguments().skip_while(|argument| !argument.eq_ignore_ascii_case(b"limit"));
    arguments.nth(1).and_then(resp::parse_integer).and_then(|limit| limit.try_into().ok())
}

#[cfg(test)]
mod tests {
    use resp::Requests;

    use crate::clients::session::{Session, Transaction};
    use crate::execution::claims::Claim;
    use crate::execution::errands::errand::Way;
    use crate::execution::errands::weight::KEY_COUNT_MAX;
    use crate::execution::permission;
    use crate::shared::Shared;
    use crate::{table, testing};

    fn way(words: &[&str], session: &Session, shared: &Shared) -> Option<Way> {
        let mut requests = Requests::default();
        requests.push_words(words);
        let request = requests.get(0, &[]);
        super::way_of(table::find(&request).expect("a command"), &request, session, shared)
    }

    fn client(shared: &Shared) -> Session {
        let mut session = testing::session(shared);
        session.may_be_away = true;
        session
    }

    #[test]
    fn long_commands_are_known_ahead() {
        let (server, _dir) = testing::server();
        let (shared, session) = (server.shared(), client(server.shared()));
        shared.keyspace.store.put("long", vec![0; 9 << 20]).expect("the store takes it");
        shared.keyspace.store.put("short", "v").expect("the store takes it");
        let long = "x".repeat(9 << 20);
        let long: &[&[&str]] = &[
            &["SET", "k", &long],
            &["PUBLISH", "k", &long],
            &["MSET", "a", "1", "k", &long],
            &["SET", "long", "v", "GET"],
            &["GETSET", "long", "v"],
            &["APPEND", "long", "v"],
            &["GETRANGE", "long", "0", "-1"],
            &["EXPIRE", "long", "1"],
            &["RENAME", "long", "k"],
            &["COPY", "long", "k"],
            &["DUMP", "long"],
            &["BITCOUNT", "long"],
            &["BITOP", "OR", "k", "short", "long"],
            &["LCS", "long", "short"],
            &["SETRANGE", "k", "9000000", "v"],
            &["SETBIT", "k", "72000000", "1"],
            &["KEYS", "*"],
            &["COUNTRANGE", "a", "b"],
            &["RANGE", "a", "b"],
            &["PREFIX", "a", "LIMIT", "1000000"],
        ];
        let short: &[&[&str]] = &[
            &["SET", "long", "v"],
            &["SET", "long", "v", "EX", "10"],
            &["SET", "short", "v", "GET"],
            &["DEL", "long"],
            &["STRLEN", "long"],
            &["GETRANGE", "short", "0", "-1"],
            &["LCS", "short", "absent"],
            &["SETRANGE", "k", "90000", "v"],
            &["RANGE", "a", "b", "LIMIT", "10"],
            &["DBSIZE"],
            &["FLUSHDB"],
            &["DEBUG", "OBJECT", "long"],
            &["MULTI"],
        ];
        long.iter().for_each(|words| assert_eq!(way(words, &session, shared), Some(Way::Queued), "{}", words[0]));
        short.iter().for_each(|words| assert_eq!(way(words, &session, shared), None, "{words:?}"));
        for words in [&["SAVE"][..], &["DEBUG", "SLEEP", "1"]] {
            assert_eq!(way(words, &session, shared), Some(Way::Apart), "{words:?}");
        }
    }

    #[test]
    fn to_clear_many_keys_in_a_transaction_takes_long() {
        let (server, _dir) = testing::server();
        let shared = server.shared();
        for count in [KEY_COUNT_MAX, KEY_COUNT_MAX + 1] {
            let old = shared.keyspace.store.len().expect("they are counted");
            (old..count).for_each(|key| shared.keyspace.store.put(key.to_be_bytes(), "v").expect("the store takes it"));
            for clearing in ["FLUSHALL", "FLUSHDB"] {
                let mut session = client(shared);
                let mut transaction = crate::clients::session::Transaction::default();
                [&[clearing][..], &["SET", "a", "1"]].iter().for_each(|words| transaction.requests.push_words(words));
                session.transaction = Some(Box::new(transaction));
                let is_long = way(&["EXEC"], &session, shared).is_some();
                assert_eq!(is_long, count > KEY_COUNT_MAX, "{clearing} of {count} keys");
            }
        }
    }

    #[test]
    fn transaction_weight_is_sum_of_commands() {
        let (server, _dir) = testing::server();
        let shared = server.shared();
        shared.keyspace.store.put("long", vec![0; 9 << 20]).expect("the store takes it");
        let third = "x".repeat(3 << 20);
        let cases: [(&[&[&str]], bool); 8] = [
            (&[&["SET", "a", "1"], &["GET", "a"]], false),
            (&[&["SET", "a", "1"], &["KEYS", "*"]], true),
            (&[&["GET", "long"]], true),
            (&[&["SELECT", "1"], &["GET", "long"]], false),
            (&[&["SELECT", "1"], &["SELECT", "0"], &["GET", "long"]], true),
            (&[&["SET", "a", &third], &["SET", "b", &third], &["SET", "c", &third]], true),
            (&[&["SETRANGE", "a", "9000000", "x"], &["GET", "a"]], true),
            (&[&["DEBUG", "SLEEP", "1"]], true),
        ];
        for (queued, is_long) in cases {
            let mut session = client(shared);
            let mut transaction = crate::clients::session::Transaction::default();
            queued.iter().for_each(|words| transaction.requests.push_words(words));
            session.transaction = Some(Box::new(transaction));
            assert_eq!(way(&["EXEC"], &session, shared).is_some(), is_long, "{}", queued[0][0]);
            assert_eq!(way(&["KEYS", "*"], &session, shared), None, "it waits for EXEC");
        }
    }

    /// Each command with as few arguments as it takes and some more, each argument being anything: judged before the command itself
    /// has looked at them.
    #[test]
    fn any_request_can_be_judged_before_it_is_executed() {
        let (server, _dir) = testing::server();
        let (shared, mut session) = (server.shared(), client(server.shared()));
        let odd = [
            "",
            "-1",
            "16",
            "255",
            "256",
            "65536",
            "9223372036854775807",
            "-9223372036854775808",
            "*",
            "LIMIT",
            "GET",
            "k",
        ];
        for entry in table::entries().iter().filter(|entry| !entry.command.executes()) {
            let name: Vec<&str> = entry.command.name.split('|').collect();
            let fewest = entry.command.arity.unsigned_abs() as usize;
            for (count, first) in (fewest..fewest + 4).flat_map(|count| (0..odd.len()).map(move |first| (count, first)))
            {
                let arguments = odd.iter().cycle().skip(first).copied();
                let words: Vec<&str> = name.iter().copied().chain(arguments).take(count).collect();
                let mut transaction = Transaction::default();
                [&["SELECT", odd[first]][..], &words, &["GET", "k"]]
                    .iter()
                    .for_each(|w| transaction.requests.push_words(w));
                let request = transaction.requests.get(1, &[]);
                if let Ok(entry) = table::find(&request) {
                    super::way_of(entry, &request, &session, shared);
                    Claim::of(entry, &request, &session);
                    let _ = permission::admit(&request, &session);
                }
                session.transaction = Some(Box::new(transaction));
                way(&["EXEC"], &session, shared);
                let mut exec = Requests::default();
                exec.push_words(&["EXEC"]);
                let exec = exec.get(0, &[]);
                Claim::of(table::find(&exec).expect("a command"), &exec, &session);
                session.transaction = None;
            }
        }
    }
}
