//! Lists.

use crate::category;
use crate::command::{Action, Command};
use crate::cost::Cost::{Elements, Popped, Span, Trimmed};
use crate::flag::{BLOCKING, DENYOOM, FAST, MOVABLE_KEYS, NOSCRIPT, READONLY, WRITE};
use crate::kind::Kind;
use crate::needs::Needs::Collections;
use crate::policy::{Policy, on};
use crate::touches::{Access, Touches, counted_keys_from, key, keys_but_last};

const fn update(touches: Touches) -> Policy {
    on(Kind::Update, touches).needs(Collections)
}

const fn read(access: Access) -> Policy {
    on(Kind::Read, key(access)).needs(Collections)
}

const fn list(name: &'static str, arity: i64, flags: u32, policy: Policy) -> Command {
    Command::new(name, arity, flags, policy).in_categories(category::LIST)
}

const PUSH_COMPLEXITY: &str = "O(1) for each element added, so O(N) to add N elements when the command is called with \
                               multiple arguments.";

const WAITS: u32 = WRITE | NOSCRIPT | BLOCKING;

const fn pushing(name: &'static str, since: &'static str, summary: &'static str) -> Command {
    list(name, -3, WRITE | DENYOOM | FAST, update(key(Access::Extend)))
        .grouped(Action::Change)
        .syntax("<key:key> <element>...")
        .documented("list", since, summary, PUSH_COMPLEXITY)
}

const fn popping(name: &'static str, summary: &'static str) -> Command {
    list(name, -2, WRITE | FAST, update(key(Access::ReadAndDelete)).costs(Popped(2)))
        .syntax("<key:key> [<count:integer>]")
        .documented("list", "1.0.0", summary, "O(N) where N is the number of elements returned")
}

const fn waiting_pop(name: &'static str, summary: &'static str) -> Command {
    list(name, -3, WAITS, update(keys_but_last(Access::ReadAndDelete)))
        .syntax("<key:key>... <timeout:double>")
        .documented("list", "2.0.0", summary, "O(N) where N is the number of provided keys.")
}

pub(super) static ROWS: &[Command] = &[
    list("blmove", 6, WAITS | DENYOOM, update(Touches::LMOVE))
        .syntax("<source:key> <destination:key> wherefrom(LEFT|RIGHT) whereto(LEFT|RIGHT) <timeout:double>")
        .documented(
            "list",
            "6.2.0",
            "Pop an element from a list, push it to another list and return it; or block until one is available",
            "O(1)",
        ),
    list(
        "blmpop",
        -5,
        WRITE | BLOCKING | MOVABLE_KEYS,
        update(counted_keys_from(2, Access::ReadAndDelete)).costs(Popped(5)),
    )
    .syntax("<timeout:double> <numkeys:integer> <key:key>... where(LEFT|RIGHT) [COUNT <count:integer>]")
    .documented(
        "list",
        "7.0.0",
        "Pop elements from a list, or block until one is available",
        "O(N+M) where N is the number of provided keys and M is the number of elements returned.",
    ),
    waiting_pop("blpop", "Remove and get the first element in a list, or block until one is available"),
    waiting_pop("brpop", "Remove and get the last element in a list, or block until one is available"),
    list("brpoplpush", 4, WAITS | DENYOOM, update(Touches::LMOVE))
        .syntax("<source:key> <destination:key> <timeout:double>")
        .documented(
            "list",
            "2.2.0",
            "Pop an element from a list, push it to another list and return it; or block until one is available",
            "O(1)",
        ),
    list("lindex", 3, READONLY, read(Access::Read)).syntax("<key:key> <index:integer>").documented(
        "list",
        "1.0.0",
        "Get an element from a list by its index",
        "O(1)",
    ),
    list("linsert", 5, WRITE | DENYOOM, update(key(Access::Extend)).costs(Elements))
        .syntax("<key:key> where(BEFORE|AFTER) <pivot> <element>")
        .documented(
            "list",
            "2.2.0",
            "Insert an element before or after another element in a list",
            "O(N) where N is the number of elements in the list.",
        ),
    list("llen", 2, READONLY | FAST, read(Access::Inspect)).syntax("<key:key>").documented(
        "list",
        "1.0.0",
        "Get the length of a list",
        "O(1)",
    ),
    list("lmove", 5, WRITE | DENYOOM, update(Touches::LMOVE))
        .syntax("<source:key> <destination:key> wherefrom(LEFT|RIGHT) whereto(LEFT|RIGHT)")
        .documented("list", "6.2.0", "Pop an element from a list, push it to another list and return it", "O(1)"),
    list("lmpop", -4, WRITE | MOVABLE_KEYS, update(counted_keys_from(1, Access::ReadAndDelete)).costs(Popped(4)))
        .syntax("<numkeys:integer> <key:key>... where(LEFT|RIGHT) [COUNT <count:integer>]")
        .documented(
            "list",
            "7.0.0",
            "Pop elements from a list",
            "O(N+M) where N is the number of provided keys and M is the number of elements returned.",
        ),
    popping("lpop", "Remove and get the first elements in a list"),
    list("lpos", -3, READONLY, read(Access::Read).costs(Elements))
        .syntax("<key:key> <element> [RANK <rank:integer>] [COUNT <num-matches:integer>] [MAXLEN <len:integer>]")
        .documented(
            "list",
            "6.0.6",
            "Return the index of matching elements on a list",
            "O(N) where N is the number of elements in the list.",
        ),
    pushing("lpush", "1.0.0", "Prepend one or multiple elements to a list"),
    pushing("lpushx", "2.2.0", "Prepend an element to a list, only if the list exists"),
    list("lrange", 4, READONLY, read(Access::Read).costs(Span(2)))
        .syntax("<key:key> <start:integer> <stop:integer>")
        .documented(
            "list",
            "1.0.0",
            "Get a range of elements from a list",
            "O(N) where N is the number of elements in the specified range.",
        ),
    list("lrem", 4, WRITE, update(key(Access::Remove)).costs(Elements))
        .syntax("<key:key> <count:integer> <element>")
        .documented(
            "list",
            "1.0.0",
            "Remove elements from a list",
            "O(N) where N is the number of elements in the list.",
        ),
    list("lset", 4, WRITE | DENYOOM, update(key(Access::Update)))
        .syntax("<key:key> <index:integer> <element>")
        .documented("list", "1.0.0", "Set the value of an element in a list by its index", "O(1)"),
    list("ltrim", 4, WRITE, update(key(Access::Remove)).costs(Trimmed(2)))
        .syntax("<key:key> <start:integer> <stop:integer>")
        .documented(
            "list",
            "1.0.0",
            "Trim a list to the specified range",
            "O(N) where N is the smaller number of the elements that stay and of those that go.",
        ),
    popping("rpop", "Remove and get the last elements in a list"),
    list("rpoplpush", 3, WRITE | DENYOOM, update(Touches::LMOVE)).syntax("<source:key> <destination:key>").documented(
        "list",
        "1.2.0",
        "Remove the last element in a list, prepend it to another list and return it",
        "O(1)",
    ),
    pushing("rpush", "1.0.0", "Append one or multiple elements to a list"),
    pushing("rpushx", "2.2.0", "Append an element to a list, only if the list exists"),
];
