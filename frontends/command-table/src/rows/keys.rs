//! Keys of any type, expiry and databases.

use crate::category;
use crate::command::Command;
use crate::cost::Cost::{Contents, Elements, Keys, KeysOfDatabases, Values};
use crate::flag::{DENYOOM, FAST, LOADING, MOVABLE_KEYS, NOSCRIPT, READONLY, STALE, WRITE};
use crate::kind::Kind;
use crate::needs::Needs::{Collections, Conditions, ConditionsOrCollections, Expiry};
use crate::policy::{SERVER, on};
use crate::touches::Touches::AllKeys;
use crate::touches::{Access, Touches, key, keys, subcommand_key};

const SORTED: u32 = category::SET | category::SORTEDSET | category::LIST | category::DANGEROUS;
const SORT_COMPLEXITY: &str = "O(N+M*log(M)) where N is the number of elements in the list or set to sort, and M the \
                               number of returned elements. When the elements are not sorted, complexity is O(N).";

pub(super) static ROWS: &[Command] = &[
    Command::new("copy", -3, WRITE | DENYOOM, on(Kind::Update, Touches::COPY).costs(Contents).needs(Conditions))
        .in_categories(category::KEYSPACE)
        .alone()
        .syntax("<source:key> <destination:key> [DB <destination-db:integer>] [REPLACE]")
        .documented(
            "generic",
            "6.2.0",
            "Copy a key",
            "O(N) worst case for collections, where N is the number of nested items. O(1) for string values.",
        ),
    Command::new("dbsize", 1, READONLY | FAST, on(Kind::Read, AllKeys).costs(KeysOfDatabases))
        .in_categories(category::KEYSPACE)
        .documented("server", "1.0.0", "Return the number of keys in the selected database", "O(1)"),
    Command::new("del", -2, WRITE, on(Kind::Delete, keys(Access::Delete)))
        .in_categories(category::KEYSPACE)
        .syntax("<key:key>...")
        .documented(
            "generic",
            "1.0.0",
            "Delete a key",
            "O(N) where N is the number of keys that will be removed. When a key to remove holds a value \
             other than a string, the individual complexity for this key is O(M) where M is the number of \
             elements in the list, set, sorted set or hash. Removing a single key that holds a string value \
             is O(1).",
        ),
    Command::new("dump", 2, READONLY, on(Kind::Read, key(Access::Read)).costs(Contents))
        .in_categories(category::KEYSPACE)
        .syntax("<key:key>")
        .documented(
            "generic",
            "2.6.0",
            "Return a serialized version of the value stored at the specified key.",
            "O(1) to access the key and additional O(N*M) to serialize it, where N is the number of Redis \
             objects composing the value and M their average size. For small string values the time \
             complexity is thus O(1)+O(1*M) where M is small, so simply O(1).",
        ),
    Command::new("exists", -2, READONLY | FAST, on(Kind::Read, keys(Access::Inspect)))
        .in_categories(category::KEYSPACE)
        .syntax("<key:key>...")
        .documented("generic", "1.0.0", "Determine if a key exists", "O(N) where N is the number of keys to check."),
    Command::new("expire", -3, WRITE | FAST, on(Kind::Update, key(Access::Update)).costs(Values).needs(Expiry))
        .in_categories(category::KEYSPACE)
        .syntax("<key:key> <seconds:integer> [condition(NX|XX|GT|LT)]")
        .documented("generic", "1.0.0", "Set a key's time to live in seconds", "O(1)"),
    Command::new("expireat", -3, WRITE | FAST, on(Kind::Update, key(Access::Update)).costs(Values).needs(Expiry))
        .in_categories(category::KEYSPACE)
        .syntax("<key:key> <unix-time-seconds:unix-time> [condition(NX|XX|GT|LT)]")
        .documented("generic", "1.2.0", "Set the expiration for a key as a UNIX timestamp", "O(1)"),
    Command::new("expiretime", 2, READONLY | FAST, on(Kind::Read, key(Access::Read)))
        .in_categories(category::KEYSPACE)
        .syntax("<key:key>")
        .documented("generic", "7.0.0", "Get the expiration Unix timestamp for a key", "O(1)"),
    Command::new("flushall", -1, WRITE, on(Kind::Delete, AllKeys).costs(KeysOfDatabases))
        .in_categories(category::KEYSPACE | category::DANGEROUS)
        .alone()
        .syntax("[async(ASYNC|SYNC)]")
        .documented(
            "server",
            "1.0.0",
            "Remove all keys from all databases",
            "O(N) where N is the total number of keys in all databases",
        ),
    Command::new("flushdb", -1, WRITE, on(Kind::Delete, AllKeys).costs(KeysOfDatabases))
        .in_categories(category::KEYSPACE | category::DANGEROUS)
        .alone()
        .syntax("[async(ASYNC|SYNC)]")
        .documented(
            "server",
            "1.0.0",
            "Remove all keys from the current database",
            "O(N) where N is the number of keys in the selected database",
        ),
    Command::new("keys", 2, READONLY, on(Kind::Range, AllKeys).costs(Keys))
        .in_categories(category::KEYSPACE | category::DANGEROUS)
        .syntax("<pattern:pattern>")
        .documented(
            "generic",
            "1.0.0",
            "Find all keys matching the given pattern",
            "O(N) with N being the number of keys in the database, under the assumption that the key names \
             in the database and the given pattern have limited length.",
        ),
    Command::new("move", 3, WRITE | FAST, on(Kind::Update, key(Access::ReadAndUpdate)).costs(Values).needs(Conditions))
        .in_categories(category::KEYSPACE)
        .alone()
        .syntax("<key:key> <db:integer>")
        .documented("generic", "1.0.0", "Move a key to another database", "O(1)"),
    Command::new("object", -2, 0, SERVER).containing(OBJECT_SUBCOMMANDS).documented(
        "generic",
        "2.2.3",
        "A container for object introspection commands",
        "Depends on subcommand.",
    ),
    Command::new("persist", 2, WRITE | FAST, on(Kind::Update, key(Access::Update)).costs(Values))
        .in_categories(category::KEYSPACE)
        .syntax("<key:key>")
        .documented("generic", "2.2.0", "Remove the expiration from a key", "O(1)"),
    Command::new("pexpire", -3, WRITE | FAST, on(Kind::Update, key(Access::Update)).costs(Values).needs(Expiry))
        .in_categories(category::KEYSPACE)
        .syntax("<key:key> <milliseconds:integer> [condition(NX|XX|GT|LT)]")
        .documented("generic", "2.6.0", "Set a key's time to live in milliseconds", "O(1)"),
    Command::new("pexpireat", -3, WRITE | FAST, on(Kind::Update, key(Access::Update)).costs(Values).needs(Expiry))
        .in_categories(category::KEYSPACE)
        .syntax("<key:key> <unix-time-milliseconds:unix-time> [condition(NX|XX|GT|LT)]")
        .documented(
            "generic",
            "2.6.0",
            "Set the expiration for a key as a UNIX timestamp specified in milliseconds",
            "O(1)",
        ),
    Command::new("pexpiretime", 2, READONLY | FAST, on(Kind::Read, key(Access::Read)))
        .in_categories(category::KEYSPACE)
        .syntax("<key:key>")
        .documented("generic", "7.0.0", "Get the expiration Unix timestamp for a key in milliseconds", "O(1)"),
    Command::new("pttl", 2, READONLY | FAST, on(Kind::Read, key(Access::Read)))
        .in_categories(category::KEYSPACE)
        .syntax("<key:key>")
        .documented("generic", "2.6.0", "Get the time to live for a key in milliseconds", "O(1)"),
    Command::new("randomkey", 1, READONLY, on(Kind::Read, AllKeys).costs(KeysOfDatabases))
        .in_categories(category::KEYSPACE)
        .documented("generic", "1.0.0", "Return a random key from the keyspace", "O(1)"),
    Command::new("rename", 3, WRITE, on(Kind::Update, Touches::RENAME).costs(Values).needs(Conditions))
        .in_categories(category::KEYSPACE)
        .alone()
        .syntax("<key:key> <newkey:key>")
        .documented("generic", "1.0.0", "Rename a key", "O(1)"),
    Command::new("renamenx", 3, WRITE | FAST, on(Kind::Update, Touches::RENAMENX).costs(Values).needs(Conditions))
        .in_categories(category::KEYSPACE)
        .alone()
        .syntax("<key:key> <newkey:key>")
        .documented("generic", "1.0.0", "Rename a key, only if the new key does not exist", "O(1)"),
    Command::new(
        "restore",
        -4,
        WRITE | DENYOOM,
        on(Kind::Update, key(Access::Overwrite)).needs(ConditionsOrCollections),
    )
    .in_categories(category::KEYSPACE | category::DANGEROUS)
    .syntax(
        "<key:key> <ttl:integer> <serialized-value> [REPLACE] [ABSTTL] [IDLETIME <seconds:integer>] \
             [FREQ <frequency:integer>]",
    )
    .documented(
        "generic",
        "2.6.0",
        "Create a key using the provided serialized value, previously obtained using DUMP.",
        "O(1) to create the new key and additional O(N*M) to reconstruct the serialized value, where N \
             is the number of Redis objects composing the value and M their average size. For small string \
             values the time complexity is thus O(1)+O(1*M) where M is small, so simply O(1). However for \
             sorted set values the complexity is O(N*M*log(N)) because inserting values into sorted sets is \
             O(log(N)).",
    ),
    Command::new("scan", -2, READONLY, on(Kind::Range, AllKeys))
        .in_categories(category::KEYSPACE)
        .syntax("<cursor:integer> [MATCH <pattern:pattern>] [COUNT <count:integer>] [TYPE <type>]")
        .documented(
            "generic",
            "2.8.0",
            "Incrementally iterate the keys space",
            "O(1) for every call. O(N) for a complete iteration, including enough command calls for the \
             cursor to return back to 0. N is the number of elements inside the collection.",
        ),
    Command::new(
        "sort",
        -2,
        WRITE | DENYOOM | MOVABLE_KEYS,
        on(Kind::Update, Touches::SORT).costs(Elements).needs(Collections),
    )
    .in_categories(SORTED)
    .alone()
    .syntax(
        "<key:key> [BY <pattern:pattern>] [LIMIT offset_count{<offset:integer> <count:integer>}] [GET <pattern:pattern>...*] \
         [order(ASC|DESC)] [ALPHA] [STORE <destination:key>]",
    )
    .documented("generic", "1.0.0", "Sort the elements in a list, set or sorted set", SORT_COMPLEXITY),
    Command::new(
        "sort_ro",
        -2,
        READONLY | MOVABLE_KEYS,
        on(Kind::Read, key(Access::Read)).costs(Elements).needs(Collections),
    )
    .in_categories(SORTED)
    .alone()
    .syntax(
        "<key:key> [BY <pattern:pattern>] [LIMIT offset_count{<offset:integer> <count:integer>}] [GET <pattern:pattern>...*] \
         [order(ASC|DESC)] [ALPHA]",
    )
    .documented(
        "generic",
        "7.0.0",
        "Sort the elements in a list, set or sorted set. Read-only variant of SORT.",
        SORT_COMPLEXITY,
    ),
    Command::new("swapdb", 3, WRITE | FAST, on(Kind::Update, AllKeys))
        .in_categories(category::KEYSPACE | category::DANGEROUS)
        .alone()
        .syntax("<index1:integer> <index2:integer>")
        .documented(
            "server",
            "4.0.0",
            "Swaps two Redis databases",
            "O(N) where N is the count of clients watching or blocking on keys from both databases.",
        ),
    Command::new("touch", -2, READONLY | FAST, on(Kind::Read, keys(Access::Inspect)))
        .in_categories(category::KEYSPACE)
        .syntax("<key:key>...")
        .documented(
            "generic",
            "3.2.1",
            "Alters the last access time of a key(s). Returns the number of existing keys specified.",
            "O(N) where N is the number of keys that will be touched.",
        ),
    Command::new("ttl", 2, READONLY | FAST, on(Kind::Read, key(Access::Read)))
        .in_categories(category::KEYSPACE)
        .syntax("<key:key>")
        .documented("generic", "1.0.0", "Get the time to live for a key in seconds", "O(1)"),
    Command::new("type", 2, READONLY | FAST, on(Kind::Read, key(Access::Inspect)))
        .in_categories(category::KEYSPACE)
        .syntax("<key:key>")
        .documented("generic", "1.0.0", "Determine the type stored at key", "O(1)"),
    Command::new("unlink", -2, WRITE | FAST, on(Kind::Delete, keys(Access::Delete)))
        .in_categories(category::KEYSPACE)
        .syntax("<key:key>...")
        .documented(
            "generic",
            "4.0.0",
            "Delete a key asynchronously in another thread. Otherwise it is just as DEL, but non blocking.",
            "O(1) for each key removed regardless of its size. Then the command does O(N) work in a \
             different thread in order to reclaim memory, where N is the number of allocations the deleted \
             objects where composed of.",
        ),
    Command::new("wait", 3, NOSCRIPT, SERVER)
        .in_categories(category::CONNECTION)
        .syntax("<numreplicas:integer> <timeout:integer>")
        .documented(
            "generic",
            "3.0.0",
            "Wait for the synchronous replication of all the write commands sent in the context of the \
             current connection",
            "O(1)",
        ),
];

static OBJECT_SUBCOMMANDS: &[Command] = &[
    Command::new("object|encoding", 3, READONLY, on(Kind::Read, subcommand_key(Access::Inspect)))
        .in_categories(category::KEYSPACE)
        .syntax("<key:key>")
        .documented("generic", "2.2.3", "Inspect the internal encoding of a Redis object", "O(1)"),
    Command::new("object|freq", 3, READONLY, on(Kind::Read, subcommand_key(Access::Inspect)))
        .in_categories(category::KEYSPACE)
        .syntax("<key:key>")
        .documented("generic", "4.0.0", "Get the logarithmic access frequency counter of a Redis object", "O(1)"),
    Command::new("object|help", 2, LOADING | STALE, SERVER).in_categories(category::KEYSPACE).documented(
        "generic",
        "6.2.0",
        "Show helpful text about the different subcommands",
        "O(1)",
    ),
    Command::new("object|idletime", 3, READONLY, on(Kind::Read, subcommand_key(Access::Inspect)))
        .in_categories(category::KEYSPACE)
        .syntax("<key:key>")
        .documented("generic", "2.2.3", "Get the time since a Redis object was last accessed", "O(1)"),
    Command::new("object|refcount", 3, READONLY, on(Kind::Read, subcommand_key(Access::Inspect)))
        .in_categories(category::KEYSPACE)
        .syntax("<key:key>")
        .documented("generic", "2.2.3", "Get the number of references to the value of the key", "O(1)"),
];
