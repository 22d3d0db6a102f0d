//! Estimates how long a request will take, before it is executed.
//!
//! The estimate is in bytes copied, or in work of about the same cost. A transaction is estimated as a whole, from the
//! values before it. That suffices: the first command that reads or creates a long value uses only values from before
//! the transaction, so this command is recognised as long.

use resp::Request;

use super::job::JobThread;
use crate::clients::session::{Session, Transaction};
use crate::keyspace::database::Database;
use crate::shared::Shared;
use command_table::{self as table, Cost, Entry, Touches, flag};

/// A request of at least this estimate is long: several milliseconds.
pub(crate) const LONG_BYTES_MIN: u64 = 8 << 20;

/// Maximum number of keys that a loop may visit.
const KEY_COUNT_MAX: u64 = 1 << 14;

/// What a key or an element counts for, without its bytes.
pub(crate) const ELEMENT_BYTES: u64 = LONG_BYTES_MIN / KEY_COUNT_MAX;

/// Longer than any number of bytes.
const UNBOUNDED: u64 = u64::MAX;

/// Returns the thread for the request if it is long and its client may wait; `None` if the loop executes it.
#[inline]
pub(crate) fn thread_for(entry: Entry, request: &Request<'_>, session: &Session, shared: &Shared) -> Option<JobThread> {
    if !session.may_use_background {
        return None;
    }
    // Even queueing a long request takes long.
    let is_long_itself = request.span_bytes() as u64 >= LONG_BYTES_MIN;
    if session.queues(entry) {
        return is_long_itself.then_some(JobThread::Shared);
    }
    if entry.command.policy.cost.needs_own_thread(request) {
        return Some(JobThread::Own);
    }
    let weight = || match &session.transaction {
        Some(transaction) if entry.command.executes() => of_transaction(transaction, session.db, shared),
        _ => of_request(entry, request, session.db, shared),
    };
    (is_long_itself || weight() >= LONG_BYTES_MIN).then_some(JobThread::Shared)
}

/// Returns whether a command of a script, which runs on a loop, would take long.
pub(crate) fn is_long(entry: Entry, request: &Request<'_>, db: Database, shared: &Shared) -> bool {
    let cost = entry.command.policy.cost;
    cost != Cost::Moment && (cost.needs_own_thread(request) || of_request(entry, request, db, shared) >= LONG_BYTES_MIN)
}

/// A transaction with a script may take any time.
fn of_transaction(transaction: &Transaction, mut db: Database, shared: &Shared) -> u64 {
    let requests = (0..transaction.requests.len()).map(|index| transaction.requests.get(index, &[]));
    let (mut sum, mut clears) = (0_u64, false);
    for request in requests {
        let Ok(entry) = table::find(&request) else { continue };
        if entry.command.runs_scripts() {
            return UNBOUNDED;
        }
        clears |= entry.command.has(flag::WRITE) && matches!(entry.command.policy.touches, Touches::AllKeys);
        if entry.command.name == "select" {
            db = resp::parse_integer(request.argument(1)).and_then(Database::of).unwrap_or(db);
        }
        let weight = if entry.command.policy.cost.needs_own_thread(&request) {
            UNBOUNDED
        } else {
            of_request(entry, &request, db, shared)
        };
        sum = sum.saturating_add(weight).saturating_add(request.span_bytes() as u64);
        if sum >= LONG_BYTES_MIN {
            break;
        }
    }
    // Its deletions and writes form one batch, key by key.
    if clears && shared.keyspace.store.len().is_ok_and(|count| count > KEY_COUNT_MAX) { UNBOUNDED } else { sum }
}

fn of_request(entry: Entry, request: &Request<'_>, db: Database, shared: &Shared) -> u64 {
    let values = || entry.command.keys_of(request).map(|(index, _)| held_bytes(request.argument(index), db, shared));
    let number = |index: usize| resp::parse_integer(request.argument(index)).map_or(0, |number| number.max(0) as u64);
    let elements = || {
        let counts =
            entry.command.keys_of(request).map(|(index, _)| element_count(request.argument(index), db, shared));
        counts.fold(0, u64::saturating_add).saturating_mul(ELEMENT_BYTES)
    };
    // A negative number is that of members that may be equal.
    let requested = |index: usize| {
        let count = resp::parse_integer(request.argument(index)).map_or(0, i64::unsigned_abs);
        count.saturating_mul(ELEMENT_BYTES)
    };
    let held = || values().fold(0, u64::saturating_add);
    match entry.command.policy.cost {
        Cost::Values => held(),
        Cost::Contents => held().saturating_add(elements()),
        Cost::Elements => elements(),
        Cost::ElementsWithin => match needed_elements(entry, request) {
            ..KEY_COUNT_MAX => 0,
            needed => elements().min(needed.saturating_mul(ELEMENT_BYTES)),
        },
        Cost::ElementsOver(count) if request.len() > count => elements().max(requested(count)),
        Cost::Popped(count) if request.len() > count && number(request.len() - 1) > KEY_COUNT_MAX => {
            elements().min(requested(request.len() - 1))
        }
        Cost::Span(index) if span_of(request, index).is_none_or(|count| count > KEY_COUNT_MAX) => elements(),
        Cost::Trimmed(index) => {
            let count = trimmed_count(request, index, element_count(request.argument(1), db, shared));
            count.saturating_mul(ELEMENT_BYTES)
        }
        Cost::ValuesIf(option) if request.len() > 3 && has_option(request, option) => held(),
        Cost::Bytes(index) => number(index).max(held()),
        Cost::Bits(index) => (number(index) / 8).max(held()),
        Cost::Product => values().fold(1, u64::saturating_mul),
        Cost::Keys => UNBOUNDED,
        Cost::KeysOfDatabases if shared.keyspace.databases.is_stored() => UNBOUNDED,
        Cost::Ranges if limit_of(request).is_none_or(|limit| limit > KEY_COUNT_MAX) => UNBOUNDED,
        Cost::Moment
        | Cost::ElementsOver(_)
        | Cost::Popped(_)
        | Cost::Span(_)
        | Cost::ValuesIf(_)
        | Cost::KeysOfDatabases
        | Cost::Ranges
        | Cost::OwnThread
        | Cost::OwnThreadIf(_) => 0,
    }
}

/// Returns at most how many elements are between two indices of a list, if its length does not matter.
fn span_of(request: &Request<'_>, index: usize) -> Option<u64> {
    let (first, last) =
        (resp::parse_integer(request.argument(index))?, resp::parse_integer(request.argument(index + 1))?);
    let has_same_start = (first < 0) == (last < 0);
    has_same_start.then(|| last.saturating_sub(first).saturating_add(1).max(0) as u64)
}

/// Returns how many elements a list loses, or keeps if these are fewer, that keeps those from one index to another.
fn trimmed_count(request: &Request<'_>, index: usize, count: u64) -> u64 {
    let end = |index: usize| {
        let number = resp::parse_integer(request.argument(index)).unwrap_or(0);
        let number = if number < 0 { number.saturating_add_unsigned(count) } else { number };
        number.clamp(-1, i64::MAX - 1)
    };
    let kept = (end(index + 1) + 1).min(count as i64).saturating_sub(end(index).max(0)).max(0) as u64;
    kept.min(count - kept)
}

/// Returns the length of the key's value, or 0 if it is unknown.
fn held_bytes(key: &[u8], db: Database, shared: &Shared) -> u64 {
    let reader = shared.keyspace.store.reader(shared.keyspace.namespace(db).raw(key));
    reader.ok().flatten().map_or(0, |reader| reader.len_bytes())
}

/// Returns the number of elements of the collection with this key, or 0 if it is unknown.
fn element_count(key: &[u8], db: Database, shared: &Shared) -> u64 {
    let (items, namespace) = (shared.keyspace.items(None), shared.keyspace.namespace(db));
    let found = shared.keyspace.view(items, namespace).and_then(|view| view.find(key).ok().flatten());
    found.map_or(0, |found| found.len())
}

/// Returns how many elements near the ends of a sorted set a request needs at most.
fn needed_elements(entry: Entry, request: &Request<'_>) -> u64 {
    let number = |index: usize| (index < request.len()).then(|| resp::parse_integer(request.argument(index))).flatten();
    let index_of =
        |option: &str| (2..request.len()).find(|at| request.argument(*at).eq_ignore_ascii_case(option.as_bytes()));
    let limit = || {
        let at = index_of("limit")?;
        let (offset, count) = (u64::try_from(number(at + 1)?).unwrap_or(0), u64::try_from(number(at + 2)?).ok()?);
        Some(offset.saturating_add(count))
    };
    let ranks = || match (number(2)?, number(3)?) {
        (0.., stop @ 0..) => Some(stop.unsigned_abs().saturating_add(1)),
        (start @ ..0, ..0) => Some(start.unsigned_abs()),
        _ => None,
    };
    let is_by_rank = index_of("byscore").or_else(|| index_of("bylex")).is_none();
    let needed = match entry.command.name {
        "zrange" | "zrevrange" if is_by_rank => ranks(),
        _ => limit(),
    };
    needed.unwrap_or(u64::MAX)
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
    use crate::execution::background::job::JobThread;
    use crate::execution::background::weight::KEY_COUNT_MAX;
    use crate::execution::claims::Claim;
    use crate::execution::permission;
    use crate::shared::Shared;
    use crate::testing;
    use command_table as table;

    fn thread(words: &[&str], session: &Session, shared: &Shared) -> Option<JobThread> {
        let mut requests = Requests::default();
        requests.push_words(words);
        let request = requests.get(0, &[]);
        super::thread_for(table::find(&request).expect("a command"), &request, session, shared)
    }

    fn client(shared: &Shared) -> Session {
        let mut session = testing::session(shared);
        session.may_use_background = true;
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
        long.iter()
            .for_each(|words| assert_eq!(thread(words, &session, shared), Some(JobThread::Shared), "{}", words[0]));
        short.iter().for_each(|words| assert_eq!(thread(words, &session, shared), None, "{words:?}"));
        for words in [&["SAVE"][..], &["DEBUG", "SLEEP", "1"]] {
            assert_eq!(thread(words, &session, shared), Some(JobThread::Own), "{words:?}");
        }
    }

    #[test]
    fn list_commands_weigh_their_elements() {
        let count = |first: &str, last: &str| {
            let mut requests = Requests::default();
            requests.push_words(&["LTRIM", "l", first, last]);
            let request = requests.get(0, &[]);
            (super::span_of(&request, 2), super::trimmed_count(&request, 2, 100))
        };
        assert_eq!(count("0", "-1"), (None, 0));
        assert_eq!(count("0", "9"), (Some(10), 10));
        assert_eq!(count("-95", "-1"), (Some(95), 5));
        assert_eq!(count("5", "1"), (Some(0), 0));
        assert_eq!(count("-9223372036854775808", "9223372036854775807"), (None, 0));
        assert_eq!(count("x", "1"), (None, 2));
    }

    #[test]
    fn clearing_many_keys_in_transaction_is_heavy() {
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
                let is_long = thread(&["EXEC"], &session, shared).is_some();
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
        let cases: [(&[&[&str]], bool); 9] = [
            (&[&["SET", "a", "1"], &["GET", "a"]], false),
            (&[&["SET", "a", "1"], &["KEYS", "*"]], true),
            (&[&["GET", "long"]], true),
            (&[&["SELECT", "1"], &["GET", "long"]], false),
            (&[&["SELECT", "1"], &["SELECT", "0"], &["GET", "long"]], true),
            (&[&["SET", "a", &third], &["SET", "b", &third], &["SET", "c", &third]], true),
            (&[&["SETRANGE", "a", "9000000", "x"], &["GET", "a"]], true),
            (&[&["DEBUG", "SLEEP", "1"]], true),
            (&[&["SET", "a", "1"], &["EVAL", "return 1", "0"]], true),
        ];
        for (queued, is_long) in cases {
            let mut session = client(shared);
            let mut transaction = crate::clients::session::Transaction::default();
            queued.iter().for_each(|words| transaction.requests.push_words(words));
            session.transaction = Some(Box::new(transaction));
            assert_eq!(thread(&["EXEC"], &session, shared).is_some(), is_long, "{}", queued[0][0]);
            assert_eq!(thread(&["KEYS", "*"], &session, shared), None, "it waits for EXEC");
        }
    }

    /// Estimates each command with the fewest arguments it accepts and a few more, with arbitrary arguments. The
    /// estimate runs before the command has checked its arguments.
    #[test]
    fn any_request_can_be_weighed() {
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
                    super::thread_for(entry, &request, &session, shared);
                    Claim::of(entry, &request, &session);
                    let _ = permission::admit(&request, &session);
                }
                session.transaction = Some(Box::new(transaction));
                thread(&["EXEC"], &session, shared);
                let mut exec = Requests::default();
                exec.push_words(&["EXEC"]);
                let exec = exec.get(0, &[]);
                Claim::of(table::find(&exec).expect("a command"), &exec, &session);
                session.transaction = None;
            }
        }
    }
}
