//! Streams.

use crate::category;
use crate::command::{Action, Command};
use crate::flag::{BLOCKING, DENYOOM, FAST, LOADING, MOVABLE_KEYS, READONLY, STALE, WRITE};
use crate::kind::Kind;
use crate::needs::Needs::Collections;
use crate::policy::{Policy, SERVER, on};
use crate::touches::{Access, key, streams, subcommand_key};

/// Creates the row of a command on streams.
const fn row(name: &'static str, arity: i64, flags: u32, policy: Policy) -> Command {
    Command::new(name, arity, flags, policy.needs(Collections)).in_categories(category::STREAM)
}

/// Creates the row of a command that contains others.
const fn container(name: &'static str, summary: &'static str) -> Command {
    Command::new(name, -2, 0, SERVER).documented("stream", "5.0.0", summary, "Depends on subcommand.")
}

const fn help(name: &'static str) -> Command {
    Command::new(name, 2, LOADING | STALE, SERVER).in_categories(category::STREAM).documented(
        "stream",
        "5.0.0",
        "Show helpful text about the different subcommands",
        "O(1)",
    )
}

pub(super) static ROWS: &[Command] = &[
    row("xack", -4, WRITE | FAST, on(Kind::Update, key(Access::Update)))
        .grouped(Action::Change)
        .syntax("<key:key> <group> <ID>...")
        .documented(
            "stream",
            "5.0.0",
            "Marks a pending message as correctly processed, effectively removing it from the pending entries list of \
             the consumer group. Return value of the command is the number of messages successfully acknowledged, that \
             is, the IDs we were actually able to resolve in the PEL.",
            "O(1) for each message ID processed.",
        ),
    row("xadd", -5, WRITE | DENYOOM | FAST, on(Kind::Update, key(Access::Update)))
        .grouped(Action::Change)
        .syntax(
            "<key:key> [NOMKSTREAM] [trim{strategy(MAXLEN|MINID) [operator(\"=\":equal|\"~\":approximately)] \
             <threshold> [LIMIT <count:integer>]}] id_or_auto(\"*\":auto_id|<ID>) field_value{<field> <value>}...",
        )
        .documented(
            "stream",
            "5.0.0",
            "Appends a new entry to a stream",
            "O(1) when adding a new entry, O(N) when trimming where N being the number of entries evicted.",
        ),
    row("xautoclaim", -6, WRITE | FAST, on(Kind::Update, key(Access::Remove)))
        .syntax("<key:key> <group> <consumer> <min-idle-time> <start> [COUNT <count:integer>] [JUSTID]")
        .documented(
            "stream",
            "6.2.0",
            "Changes (or acquires) ownership of messages in a consumer group, as if the messages were delivered to the \
             specified consumer.",
            "O(1) if COUNT is small.",
        ),
    row("xclaim", -6, WRITE | FAST, on(Kind::Update, key(Access::Update)))
        .syntax(
            "<key:key> <group> <consumer> <min-idle-time> <ID>... [IDLE <ms:integer>] \
             [TIME <unix-time-milliseconds:unix-time>] [RETRYCOUNT <count:integer>] [FORCE] [JUSTID] [LASTID <id>]",
        )
        .documented(
            "stream",
            "5.0.0",
            "Changes (or acquires) ownership of a message in a consumer group, as if the message was delivered to the \
             specified consumer.",
            "O(log N) with N being the number of messages in the PEL of the consumer group.",
        ),
    row("xdel", -3, WRITE | FAST, on(Kind::Update, key(Access::Remove)))
        .grouped(Action::Change)
        .syntax("<key:key> <ID>...")
        .documented(
            "stream",
            "5.0.0",
            "Removes the specified entries from the stream. Returns the number of items actually deleted, that may be \
             different from the number of IDs passed in case certain IDs do not exist.",
            "O(1) for each single item to delete in the stream, regardless of the stream size.",
        ),
    container("xgroup", "A container for consumer groups commands").containing(GROUP_SUBCOMMANDS),
    container("xinfo", "A container for stream introspection commands").containing(INFO_SUBCOMMANDS),
    row("xlen", 2, READONLY | FAST, on(Kind::Read, key(Access::Inspect))).syntax("<key:key>").documented(
        "stream",
        "5.0.0",
        "Return the number of entries in a stream",
        "O(1)",
    ),
    row("xpending", -3, READONLY, on(Kind::Read, key(Access::Read)))
        .syntax(
            "<key:key> <group> \
             [filters{[IDLE <min-idle-time:integer>] <start> <end> <count:integer> [<consumer>]}]",
        )
        .documented(
            "stream",
            "5.0.0",
            "Return information and entries from a stream consumer group pending entries list, that are messages \
             fetched but never acknowledged.",
            "O(N) with N being the number of elements returned, so asking for a small fixed number of entries per call \
             is O(1). O(M), where M is the total number of entries scanned when used with the IDLE filter. When the \
             command returns just the summary and the list of consumers is small, it runs in O(1) time; otherwise, an \
             additional O(N) time for iterating every consumer.",
        ),
    row("xrange", -4, READONLY, on(Kind::Range, key(Access::Read)))
        .syntax("<key:key> <start> <end> [COUNT <count:integer>]")
        .documented(
            "stream",
            "5.0.0",
            "Return a range of elements in a stream, with IDs matching the specified IDs interval",
            "O(N) with N being the number of elements being returned. If N is constant (e.g. always asking for the \
             first 10 elements with COUNT), you can consider it O(1).",
        ),
    row("xread", -4, READONLY | BLOCKING | MOVABLE_KEYS, on(Kind::Range, streams(1, Access::Read)))
        .syntax("[COUNT <count:integer>] [BLOCK <milliseconds:integer>] STREAMS streams{<key:key>... <ID>...}")
        .documented(
            "stream",
            "5.0.0",
            "Return never seen elements in multiple streams, with IDs greater than the ones reported by the caller for \
             each stream. Can block.",
            "For each stream mentioned: O(N) with N being the number of elements being returned, it means that \
             XREAD-ing with a fixed COUNT is O(1). Note that when the BLOCK option is used, XADD will pay O(M) time in \
             order to serve the M clients blocked on the stream getting new data.",
        ),
    row("xreadgroup", -7, WRITE | BLOCKING | MOVABLE_KEYS, on(Kind::Update, streams(4, Access::Read)))
        .syntax(
            "GROUP group_consumer{<group> <consumer>} [COUNT <count:integer>] [BLOCK <milliseconds:integer>] [NOACK] \
             STREAMS streams{<key:key>... <ID>...}",
        )
        .documented(
            "stream",
            "5.0.0",
            "Return new entries from a stream using a consumer group, or access the history of the pending entries for \
             a given consumer. Can block.",
            "For each stream mentioned: O(M) with M being the number of elements returned. If M is constant (e.g. \
             always asking for the first 10 elements with COUNT), you can consider it O(1). On the other side when \
             XREADGROUP blocks, XADD will pay the O(N) time in order to serve the N clients blocked on the stream \
             getting new data.",
        ),
    row("xrevrange", -4, READONLY, on(Kind::Range, key(Access::Read)))
        .syntax("<key:key> <end> <start> [COUNT <count:integer>]")
        .documented(
            "stream",
            "5.0.0",
            "Return a range of elements in a stream, with IDs matching the specified IDs interval, in reverse order \
             (from greater to smaller IDs) compared to XRANGE",
            "O(N) with N being the number of elements returned. If N is constant (e.g. always asking for the first 10 \
             elements with COUNT), you can consider it O(1).",
        ),
    row("xsetid", -3, WRITE | DENYOOM | FAST, on(Kind::Update, key(Access::Update)))
        .syntax("<key:key> <last-id> [ENTRIESADDED <entries_added:integer>] [MAXDELETEDID <max_deleted_entry_id>]")
        .documented("stream", "5.0.0", "An internal command for replicating stream values", "O(1)"),
    row("xtrim", -4, WRITE, on(Kind::Update, key(Access::Remove)))
        .syntax(
            "<key:key> trim{strategy(MAXLEN|MINID) [operator(\"=\":equal|\"~\":approximately)] <threshold> \
             [LIMIT <count:integer>]}",
        )
        .documented(
            "stream",
            "5.0.0",
            "Trims the stream to (approximately if '~' is passed) a certain size",
            "O(N), with N being the number of evicted entries. Constant times are very small however, since entries \
             are organized in macro nodes containing multiple entries that can be released with a single deallocation.",
        ),
];

static GROUP_SUBCOMMANDS: &[Command] = &[
    row("xgroup|create", -5, WRITE | DENYOOM, on(Kind::Update, subcommand_key(Access::Extend)))
        .syntax("<key:key> <groupname> id(<ID>|\"$\":new_id) [MKSTREAM] [ENTRIESREAD <entries_read:integer>]")
        .documented("stream", "5.0.0", "Create a consumer group.", "O(1)"),
    row("xgroup|createconsumer", 5, WRITE | DENYOOM, on(Kind::Update, subcommand_key(Access::Extend)))
        .syntax("<key:key> <groupname> <consumername>")
        .documented("stream", "6.2.0", "Create a consumer in a consumer group.", "O(1)"),
    row("xgroup|delconsumer", 5, WRITE, on(Kind::Update, subcommand_key(Access::Remove)))
        .syntax("<key:key> <groupname> <consumername>")
        .documented("stream", "5.0.0", "Delete a consumer from a consumer group.", "O(1)"),
    row("xgroup|destroy", 4, WRITE, on(Kind::Update, subcommand_key(Access::Remove)))
        .syntax("<key:key> <groupname>")
        .documented(
            "stream",
            "5.0.0",
            "Destroy a consumer group.",
            "O(N) where N is the number of entries in the group's pending entries list (PEL).",
        ),
    help("xgroup|help"),
    row("xgroup|setid", -5, WRITE, on(Kind::Update, subcommand_key(Access::Update)))
        .syntax("<key:key> <groupname> id(<ID>|\"$\":new_id) [ENTRIESREAD <entries_read:integer>]")
        .documented("stream", "5.0.0", "Set a consumer group to an arbitrary last delivered ID value.", "O(1)"),
];

static INFO_SUBCOMMANDS: &[Command] = &[
    row("xinfo|consumers", 4, READONLY, on(Kind::Read, subcommand_key(Access::Read)))
        .syntax("<key:key> <groupname>")
        .documented("stream", "5.0.0", "List the consumers in a consumer group", "O(1)"),
    row("xinfo|groups", 3, READONLY, on(Kind::Read, subcommand_key(Access::Read))).syntax("<key:key>").documented(
        "stream",
        "5.0.0",
        "List the consumer groups of a stream",
        "O(1)",
    ),
    help("xinfo|help"),
    row("xinfo|stream", -3, READONLY, on(Kind::Read, subcommand_key(Access::Read)))
        .syntax("<key:key> [FULL full{[COUNT <count:integer>]}]")
        .documented("stream", "5.0.0", "Get information about a stream", "O(1)"),
];
