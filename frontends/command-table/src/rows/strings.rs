//! Strings.

use crate::category;
use crate::command::{Action, Command, ReadShape};
use crate::cost::Cost::{Bytes, Product, Values, ValuesIf};
use crate::flag::{DENYOOM, FAST, READONLY, WRITE};
use crate::kind::Kind;
use crate::needs::Needs::{Batches, Conditions, Expiry};
use crate::policy::on;
use crate::touches::{Access, Touches, key, keys, keys_and_values};

pub(super) static ROWS: &[Command] = &[
    Command::new(
        "append",
        3,
        WRITE | DENYOOM | FAST,
        on(Kind::Update, key(Access::Extend)).costs(Values).needs(Conditions),
    )
    .in_categories(category::STRING)
    .syntax("<key:key> <value>")
    .documented(
        "string",
        "2.0.0",
        "Append a value to a key",
        "O(1). The amortized time complexity is O(1) assuming the appended value is small and the \
             already present value is of any size, since the dynamic string library used by Redis will \
             double the free space available on every reallocation.",
    ),
    Command::new("decr", 2, WRITE | DENYOOM | FAST, on(Kind::Update, key(Access::ReadAndUpdate)).needs(Conditions))
        .grouped(Action::Update)
        .in_categories(category::STRING)
        .syntax("<key:key>")
        .documented("string", "1.0.0", "Decrement the integer value of a key by one", "O(1)"),
    Command::new("decrby", 3, WRITE | DENYOOM | FAST, on(Kind::Update, key(Access::ReadAndUpdate)).needs(Conditions))
        .grouped(Action::Update)
        .in_categories(category::STRING)
        .syntax("<key:key> <decrement:integer>")
        .documented("string", "1.0.0", "Decrement the integer value of a key by the given number", "O(1)"),
    Command::new("get", 2, READONLY | FAST, on(Kind::Get, key(Access::Read)).costs(Values))
        .grouped(Action::Read(ReadShape::Value))
        .in_categories(category::STRING)
        .syntax("<key:key>")
        .documented("string", "1.0.0", "Get the value of a key", "O(1)"),
    Command::new(
        "getdel",
        2,
        WRITE | FAST,
        on(Kind::Update, key(Access::ReadAndDelete)).costs(Values).needs(Conditions),
    )
    .in_categories(category::STRING)
    .syntax("<key:key>")
    .documented("string", "6.2.0", "Get the value of a key and delete the key", "O(1)"),
    Command::new("getex", -2, WRITE | FAST, on(Kind::Update, key(Access::ReadAndUpdate)).costs(Values))
        .in_categories(category::STRING)
        .syntax(
            "<key:key> [expiration(EX <seconds:integer>|PX <milliseconds:integer>|EXAT \
             <unix-time-seconds:unix-time>|PXAT <unix-time-milliseconds:unix-time>|PERSIST)]",
        )
        .documented("string", "6.2.0", "Get the value of a key and optionally set its expiration", "O(1)"),
    Command::new("getrange", 4, READONLY, on(Kind::Read, key(Access::Read)).costs(Values))
        .in_categories(category::STRING)
        .syntax("<key:key> <start:integer> <end:integer>")
        .documented(
            "string",
            "2.4.0",
            "Get a substring of the string stored at a key",
            "O(N) where N is the length of the returned string. The complexity is ultimately determined by \
             the returned length, but because creating a substring from an existing string is very cheap, it \
             can be considered O(1) for small strings.",
        ),
    Command::new(
        "getset",
        3,
        WRITE | DENYOOM | FAST,
        on(Kind::Update, key(Access::ReadAndUpdate)).costs(Values).needs(Conditions),
    )
    .in_categories(category::STRING)
    .syntax("<key:key> <value>")
    .documented("string", "1.0.0", "Set the string value of a key and return its old value", "O(1)"),
    Command::new("incr", 2, WRITE | DENYOOM | FAST, on(Kind::Update, key(Access::ReadAndUpdate)).needs(Conditions))
        .grouped(Action::Update)
        .in_categories(category::STRING)
        .syntax("<key:key>")
        .documented("string", "1.0.0", "Increment the integer value of a key by one", "O(1)"),
    Command::new("incrby", 3, WRITE | DENYOOM | FAST, on(Kind::Update, key(Access::ReadAndUpdate)).needs(Conditions))
        .grouped(Action::Update)
        .in_categories(category::STRING)
        .syntax("<key:key> <increment:integer>")
        .documented("string", "1.0.0", "Increment the integer value of a key by the given amount", "O(1)"),
    Command::new(
        "incrbyfloat",
        3,
        WRITE | DENYOOM | FAST,
        on(Kind::Update, key(Access::ReadAndUpdate)).needs(Conditions),
    )
    .in_categories(category::STRING)
    .syntax("<key:key> <increment:double>")
    .documented("string", "2.6.0", "Increment the float value of a key by the given amount", "O(1)"),
    Command::new("lcs", -3, READONLY, on(Kind::Read, Touches::LCS).costs(Product))
        .in_categories(category::STRING)
        .syntax("<key1:key> <key2:key> [LEN] [IDX] [MINMATCHLEN <len:integer>] [WITHMATCHLEN]")
        .documented(
            "string",
            "7.0.0",
            "Find longest common substring",
            "O(N*M) where N and M are the lengths of s1 and s2, respectively",
        ),
    Command::new("mget", -2, READONLY | FAST, on(Kind::Get, keys(Access::Read)).costs(Values))
        .grouped(Action::Read(ReadShape::Array))
        .in_categories(category::STRING)
        .syntax("<key:key>...")
        .documented(
            "string",
            "1.0.0",
            "Get the values of all the given keys",
            "O(N) where N is the number of keys to retrieve.",
        ),
    Command::new("mset", -3, WRITE | DENYOOM, on(Kind::Set, keys_and_values(Access::Overwrite)).needs(Batches))
        .in_categories(category::STRING)
        .alone()
        .syntax("key_value{<key:key> <value>}...")
        .documented(
            "string",
            "1.0.1",
            "Set multiple keys to multiple values",
            "O(N) where N is the number of keys to set.",
        ),
    Command::new("msetnx", -3, WRITE | DENYOOM, on(Kind::Set, keys_and_values(Access::Create)).needs(Batches))
        .in_categories(category::STRING)
        .alone()
        .syntax("key_value{<key:key> <value>}...")
        .documented(
            "string",
            "1.0.1",
            "Set multiple keys to multiple values, only if none of the keys exist",
            "O(N) where N is the number of keys to set.",
        ),
    Command::new("psetex", 4, WRITE | DENYOOM, on(Kind::Set, key(Access::Overwrite)).needs(Expiry))
        .in_categories(category::STRING)
        .syntax("<key:key> <milliseconds:integer> <value>")
        .documented("string", "2.6.0", "Set the value and expiration in milliseconds of a key", "O(1)"),
    Command::new("set", -3, WRITE | DENYOOM, on(Kind::Set, Touches::SET).costs(ValuesIf("get")))
        .grouped(Action::Put)
        .in_categories(category::STRING)
        .syntax(
            "<key:key> <value> [condition(NX|XX)] [GET] [expiration(EX <seconds:integer>|PX \
             <milliseconds:integer>|EXAT <unix-time-seconds:unix-time>|PXAT \
             <unix-time-milliseconds:unix-time>|KEEPTTL)] [DURABLE level(POWER|BUFFERED|PROCESS)]",
        )
        .documented(
            "string",
            "1.0.0",
            "Set the string value of a key; DURABLE power|buffered|process selects the durability of this write",
            "O(1)",
        ),
    Command::new("setex", 4, WRITE | DENYOOM, on(Kind::Set, key(Access::Overwrite)).needs(Expiry))
        .in_categories(category::STRING)
        .syntax("<key:key> <seconds:integer> <value>")
        .documented("string", "2.0.0", "Set the value and expiration of a key", "O(1)"),
    Command::new("setnx", 3, WRITE | DENYOOM | FAST, on(Kind::Set, key(Access::Create)).needs(Conditions))
        .in_categories(category::STRING)
        .syntax("<key:key> <value>")
        .documented("string", "1.0.0", "Set the value of a key, only if the key does not exist", "O(1)"),
    Command::new(
        "setrange",
        4,
        WRITE | DENYOOM,
        on(Kind::Update, key(Access::Update)).costs(Bytes(2)).needs(Conditions),
    )
    .in_categories(category::STRING)
    .syntax("<key:key> <offset:integer> <value>")
    .documented(
        "string",
        "2.2.0",
        "Overwrite part of a string at key starting at the specified offset",
        "O(1), not counting the time taken to copy the new string in place. Usually, this string is very \
             small so the amortized complexity is O(1). Otherwise, complexity is O(M) with M being the \
             length of the value argument.",
    ),
    Command::new("strlen", 2, READONLY | FAST, on(Kind::Read, key(Access::Inspect)))
        .in_categories(category::STRING)
        .syntax("<key:key>")
        .documented("string", "2.2.0", "Get the length of the value stored in a key", "O(1)"),
    Command::new("substr", 4, READONLY, on(Kind::Read, key(Access::Read)).costs(Values))
        .in_categories(category::STRING)
        .syntax("<key:key> <start:integer> <end:integer>")
        .documented(
            "string",
            "1.0.0",
            "Get a substring of the string stored at a key",
            "O(N) where N is the length of the returned string. The complexity is ultimately determined by \
             the returned length, but because creating a substring from an existing string is very cheap, it \
             can be considered O(1) for small strings.",
        ),
];
