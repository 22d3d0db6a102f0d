//! Sorted sets.

use crate::category;
use crate::command::{Action, Command};
use crate::cost::Cost::{Elements, ElementsOver, ElementsWithin, Popped};
use crate::flag::{BLOCKING, DENYOOM, FAST, MOVABLE_KEYS, NOSCRIPT, READONLY, WRITE};
use crate::kind::Kind;
use crate::needs::Needs::Collections;
use crate::policy::{Policy, on};
use crate::touches::{Access, Touches, counted_keys_from, key, keys_but_last, stored_from_counted_keys};

/// Creates the row of a command on sorted sets.
const fn row(name: &'static str, arity: i64, flags: u32, policy: Policy) -> Command {
    Command::new(name, arity, flags, policy.needs(Collections)).in_categories(category::SORTEDSET)
}

/// Creates the row of a command that stores its combination of sorted sets under its first key.
const fn storing(name: &'static str, summary: &'static str, complexity: &'static str) -> Command {
    row(name, -4, WRITE | DENYOOM | MOVABLE_KEYS, on(Kind::Update, stored_from_counted_keys()).costs(Elements))
        .syntax(
            "<destination:key> <numkeys:integer> <key:key>... [WEIGHTS <weight:integer>...] \
             [AGGREGATE aggregate(SUM|MIN|MAX)]",
        )
        .documented("sorted-set", "2.0.0", summary, complexity)
}

/// Creates the row of a command that waits for a member of one of its keys.
const fn waiting_pop(name: &'static str, summary: &'static str) -> Command {
    let keys = keys_but_last(Access::ReadAndDelete);
    row(name, -3, WRITE | NOSCRIPT | BLOCKING | FAST, on(Kind::Update, keys))
        .syntax("<key:key>... <timeout:double>")
        .documented("sorted-set", "5.0.0", summary, "O(log(N)) with N being the number of elements in the sorted set.")
}

const INTERSECTION: &str = "O(N*K)+O(M*log(M)) worst case with N being the smallest input sorted set, K being the \
             number of input sorted sets and M being the number of elements in the resulting sorted \
             set.";
const POP: &str = "O(log(N)*M) with N being the number of elements in the sorted set, and M being the \
             number of elements popped.";
const POP_OF_SEVERAL: &str = "O(K) + O(M*log(N)) where K is the number of provided keys, N being the number of \
             elements in the sorted set, and M being the number of elements popped.";
const RANGE: &str = "O(log(N)+M) with N being the number of elements in the sorted set and M the number of \
             elements being returned. If M is constant (e.g. always asking for the first 10 \
             elements with LIMIT), you can consider it O(log(N)).";
const REMOVAL: &str = "O(log(N)+M) with N being the number of elements in the sorted set and M the number of \
             elements removed by the operation.";

pub(super) static ROWS: &[Command] = &[
    row(
        "bzmpop",
        -5,
        WRITE | BLOCKING | MOVABLE_KEYS,
        on(Kind::Update, counted_keys_from(2, Access::ReadAndDelete)).costs(Popped(5)),
    )
    .syntax("<timeout:double> <numkeys:integer> <key:key>... where(MIN|MAX) [COUNT <count:integer>]")
    .documented(
        "sorted-set",
        "7.0.0",
        "Remove and return members with scores in a sorted set or block until one is available",
        POP_OF_SEVERAL,
    ),
    waiting_pop(
        "bzpopmax",
        "Remove and return the member with the highest score from one or more sorted sets, or block until one is \
         available",
    ),
    waiting_pop(
        "bzpopmin",
        "Remove and return the member with the lowest score from one or more sorted sets, or block until one is \
         available",
    ),
    row("zadd", -4, WRITE | DENYOOM | FAST, on(Kind::Update, key(Access::Update)))
        .grouped(Action::Change)
        .syntax(
            "<key:key> [condition(NX|XX)] [comparison(GT|LT)] [CH] [INCR] \
             score_member{<score:double> <member>}...",
        )
        .documented(
            "sorted-set",
            "1.2.0",
            "Add one or more members to a sorted set, or update its score if it already exists",
            "O(log(N)) for each item added, where N is the number of elements in the sorted set.",
        ),
    row("zcard", 2, READONLY | FAST, on(Kind::Read, key(Access::Inspect))).syntax("<key:key>").documented(
        "sorted-set",
        "1.2.0",
        "Get the number of members in a sorted set",
        "O(1)",
    ),
    row("zcount", 4, READONLY | FAST, on(Kind::Read, key(Access::Read)).costs(Elements))
        .syntax("<key:key> <min:double> <max:double>")
        .documented(
            "sorted-set",
            "2.0.0",
            "Count the members in a sorted set with scores within the given values",
            "O(log(N)) with N being the number of elements in the sorted set.",
        ),
    row("zdiff", -3, READONLY | MOVABLE_KEYS, on(Kind::Read, counted_keys_from(1, Access::Read)).costs(Elements))
        .syntax("<numkeys:integer> <key:key>... [WITHSCORES]")
        .documented(
            "sorted-set",
            "6.2.0",
            "Subtract multiple sorted sets",
            "O(L + (N-K)log(N)) worst case where L is the total number of elements in all the sets, \
             N is the size of the first set, and K is the size of the result set.",
        ),
    row("zdiffstore", -4, WRITE | DENYOOM | MOVABLE_KEYS, on(Kind::Update, stored_from_counted_keys()).costs(Elements))
        .syntax("<destination:key> <numkeys:integer> <key:key>...")
        .documented(
            "sorted-set",
            "6.2.0",
            "Subtract multiple sorted sets and store the resulting sorted set in a new key",
            "O(L + (N-K)log(N)) worst case where L is the total number of elements in all the sets, \
             N is the size of the first set, and K is the size of the result set.",
        ),
    row("zincrby", 4, WRITE | DENYOOM | FAST, on(Kind::Update, key(Access::ReadAndUpdate)))
        .grouped(Action::Change)
        .syntax("<key:key> <increment:integer> <member>")
        .documented(
            "sorted-set",
            "1.2.0",
            "Increment the score of a member in a sorted set",
            "O(log(N)) where N is the number of elements in the sorted set.",
        ),
    row("zinter", -3, READONLY | MOVABLE_KEYS, on(Kind::Read, counted_keys_from(1, Access::Read)).costs(Elements))
        .syntax(
            "<numkeys:integer> <key:key>... [WEIGHTS <weight:integer>...] [AGGREGATE \
             aggregate(SUM|MIN|MAX)] [WITHSCORES]",
        )
        .documented("sorted-set", "6.2.0", "Intersect multiple sorted sets", INTERSECTION),
    row("zintercard", -3, READONLY | MOVABLE_KEYS, on(Kind::Read, counted_keys_from(1, Access::Read)).costs(Elements))
        .syntax("<numkeys:integer> <key:key>... [LIMIT <limit:integer>]")
        .documented(
            "sorted-set",
            "7.0.0",
            "Intersect multiple sorted sets and return the cardinality of the result",
            "O(N*K) worst case with N being the smallest input sorted set, K being the number of \
             input sorted sets.",
        ),
    storing(
        "zinterstore",
        "Intersect multiple sorted sets and store the resulting sorted set in a new key",
        INTERSECTION,
    ),
    row("zlexcount", 4, READONLY | FAST, on(Kind::Read, key(Access::Read)).costs(Elements))
        .syntax("<key:key> <min> <max>")
        .documented(
            "sorted-set",
            "2.8.9",
            "Count the number of members in a sorted set between a given lexicographical range",
            "O(log(N)) with N being the number of elements in the sorted set.",
        ),
    row(
        "zmpop",
        -4,
        WRITE | MOVABLE_KEYS,
        on(Kind::Update, counted_keys_from(1, Access::ReadAndDelete)).costs(Popped(4)),
    )
    .syntax("<numkeys:integer> <key:key>... where(MIN|MAX) [COUNT <count:integer>]")
    .documented("sorted-set", "7.0.0", "Remove and return members with scores in a sorted set", POP_OF_SEVERAL),
    row("zmscore", -3, READONLY | FAST, on(Kind::Read, key(Access::Read))).syntax("<key:key> <member>...").documented(
        "sorted-set",
        "6.2.0",
        "Get the score associated with the given members in a sorted set",
        "O(N) where N is the number of members being requested.",
    ),
    row("zpopmax", -2, WRITE | FAST, on(Kind::Update, key(Access::ReadAndDelete)).costs(Popped(2)))
        .syntax("<key:key> [<count:integer>]")
        .documented("sorted-set", "5.0.0", "Remove and return members with the highest scores in a sorted set", POP),
    row("zpopmin", -2, WRITE | FAST, on(Kind::Update, key(Access::ReadAndDelete)).costs(Popped(2)))
        .syntax("<key:key> [<count:integer>]")
        .documented("sorted-set", "5.0.0", "Remove and return members with the lowest scores in a sorted set", POP),
    row("zrandmember", -2, READONLY, on(Kind::Read, key(Access::Read)).costs(ElementsOver(2)))
        .syntax("<key:key> [options{<count:integer> [WITHSCORES]}]")
        .documented(
            "sorted-set",
            "6.2.0",
            "Get one or multiple random elements from a sorted set",
            "O(N) where N is the number of elements returned",
        ),
    row("zrange", -4, READONLY, on(Kind::Range, key(Access::Read)).costs(ElementsWithin))
        .syntax(
            "<key:key> <start> <stop> [sortby(BYSCORE|BYLEX)] [REV] [LIMIT \
             offset_count{<offset:integer> <count:integer>}] [WITHSCORES]",
        )
        .documented(
            "sorted-set",
            "1.2.0",
            "Return a range of members in a sorted set",
            "O(log(N)+M) with N being the number of elements in the sorted set and M the number of \
             elements returned.",
        ),
    row("zrangebylex", -4, READONLY, on(Kind::Range, key(Access::Read)).costs(ElementsWithin))
        .syntax("<key:key> <min> <max> [LIMIT offset_count{<offset:integer> <count:integer>}]")
        .documented(
            "sorted-set",
            "2.8.9",
            "Return a range of members in a sorted set, by lexicographical range",
            RANGE,
        ),
    row("zrangebyscore", -4, READONLY, on(Kind::Range, key(Access::Read)).costs(ElementsWithin))
        .syntax(
            "<key:key> <min:double> <max:double> [WITHSCORES] [LIMIT offset_count{<offset:integer> \
             <count:integer>}]",
        )
        .documented("sorted-set", "1.0.5", "Return a range of members in a sorted set, by score", RANGE),
    row("zrangestore", -5, WRITE | DENYOOM, on(Kind::Update, Touches::RANGESTORE).costs(Elements))
        .syntax(
            "<dst:key> <src:key> <min> <max> [sortby(BYSCORE|BYLEX)] [REV] [LIMIT \
             offset_count{<offset:integer> <count:integer>}]",
        )
        .documented(
            "sorted-set",
            "6.2.0",
            "Store a range of members from sorted set into another key",
            "O(log(N)+M) with N being the number of elements in the sorted set and M the number of \
             elements stored into the destination key.",
        ),
    row("zrank", 3, READONLY | FAST, on(Kind::Read, key(Access::Read)).costs(Elements))
        .syntax("<key:key> <member>")
        .documented("sorted-set", "2.0.0", "Determine the index of a member in a sorted set", "O(log(N))"),
    row("zrem", -3, WRITE | FAST, on(Kind::Update, key(Access::Remove)))
        .grouped(Action::Change)
        .syntax("<key:key> <member>...")
        .documented(
            "sorted-set",
            "1.2.0",
            "Remove one or more members from a sorted set",
            "O(M*log(N)) with N being the number of elements in the sorted set and M the number of \
             elements to be removed.",
        ),
    row("zremrangebylex", 4, WRITE, on(Kind::Update, key(Access::Remove)).costs(Elements))
        .syntax("<key:key> <min> <max>")
        .documented(
            "sorted-set",
            "2.8.9",
            "Remove all members in a sorted set between the given lexicographical range",
            REMOVAL,
        ),
    row("zremrangebyrank", 4, WRITE, on(Kind::Update, key(Access::Remove)).costs(Elements))
        .syntax("<key:key> <start:integer> <stop:integer>")
        .documented("sorted-set", "2.0.0", "Remove all members in a sorted set within the given indexes", REMOVAL),
    row("zremrangebyscore", 4, WRITE, on(Kind::Update, key(Access::Remove)).costs(Elements))
        .syntax("<key:key> <min:double> <max:double>")
        .documented("sorted-set", "1.2.0", "Remove all members in a sorted set within the given scores", REMOVAL),
    row("zrevrange", -4, READONLY, on(Kind::Range, key(Access::Read)).costs(ElementsWithin))
        .syntax("<key:key> <start:integer> <stop:integer> [WITHSCORES]")
        .documented(
            "sorted-set",
            "1.2.0",
            "Return a range of members in a sorted set, by index, with scores ordered from high to low",
            "O(log(N)+M) with N being the number of elements in the sorted set and M the number of \
             elements returned.",
        ),
    row("zrevrangebylex", -4, READONLY, on(Kind::Range, key(Access::Read)).costs(ElementsWithin))
        .syntax("<key:key> <max> <min> [LIMIT offset_count{<offset:integer> <count:integer>}]")
        .documented(
            "sorted-set",
            "2.8.9",
            "Return a range of members in a sorted set, by lexicographical range, ordered from \
             higher to lower strings.",
            RANGE,
        ),
    row("zrevrangebyscore", -4, READONLY, on(Kind::Range, key(Access::Read)).costs(ElementsWithin))
        .syntax(
            "<key:key> <max:double> <min:double> [WITHSCORES] [LIMIT offset_count{<offset:integer> \
             <count:integer>}]",
        )
        .documented(
            "sorted-set",
            "2.2.0",
            "Return a range of members in a sorted set, by score, with scores ordered from high to low",
            RANGE,
        ),
    row("zrevrank", 3, READONLY | FAST, on(Kind::Read, key(Access::Read)).costs(Elements))
        .syntax("<key:key> <member>")
        .documented(
            "sorted-set",
            "2.0.0",
            "Determine the index of a member in a sorted set, with scores ordered from high to low",
            "O(log(N))",
        ),
    row("zscan", -3, READONLY, on(Kind::Range, key(Access::Read)))
        .syntax("<key:key> <cursor:integer> [MATCH <pattern:pattern>] [COUNT <count:integer>]")
        .documented(
            "sorted-set",
            "2.8.0",
            "Incrementally iterate sorted sets elements and associated scores",
            "O(1) for every call. O(N) for a complete iteration, including enough command calls for \
             the cursor to return back to 0. N is the number of elements inside the collection..",
        ),
    row("zscore", 3, READONLY | FAST, on(Kind::Read, key(Access::Read))).syntax("<key:key> <member>").documented(
        "sorted-set",
        "1.2.0",
        "Get the score associated with the given member in a sorted set",
        "O(1)",
    ),
    row("zunion", -3, READONLY | MOVABLE_KEYS, on(Kind::Read, counted_keys_from(1, Access::Read)).costs(Elements))
        .syntax(
            "<numkeys:integer> <key:key>... [WEIGHTS <weight:integer>...] [AGGREGATE \
             aggregate(SUM|MIN|MAX)] [WITHSCORES]",
        )
        .documented(
            "sorted-set",
            "6.2.0",
            "Add multiple sorted sets",
            "O(N)+O(M*log(M)) with N being the sum of the sizes of the input sorted sets, and M \
             being the number of elements in the resulting sorted set.",
        ),
    storing(
        "zunionstore",
        "Add multiple sorted sets and store the resulting sorted set in a new key",
        "O(N)+O(M log(M)) with N being the sum of the sizes of the input sorted sets, and M \
             being the number of elements in the resulting sorted set.",
    ),
];
