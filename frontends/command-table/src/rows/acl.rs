//! ACL.

use crate::command::Command;
use crate::flag::{ADMIN, LOADING, NOSCRIPT, STALE};
use crate::kind::Kind;
use crate::policy::{SECRET, on};
use crate::touches::Touches::OthersRequests;

pub(super) static ROWS: &[Command] = &[Command::new("acl", -2, 0, SECRET).containing(ACL_SUBCOMMANDS).documented(
    "server",
    "6.0.0",
    "A container for Access List Control commands ",
    "Depends on subcommand.",
)];

static ACL_SUBCOMMANDS: &[Command] = &[
    Command::new("acl|cat", -2, NOSCRIPT | LOADING | STALE, SECRET).syntax("[<categoryname>]").documented(
        "server",
        "6.0.0",
        "List the ACL categories or the commands inside a category",
        "O(1) since the categories and commands are a fixed set.",
    ),
    Command::new("acl|deluser", -3, ADMIN | NOSCRIPT | LOADING | STALE, SECRET)
        .alone()
        .syntax("<username>...")
        .documented(
            "server",
            "6.0.0",
            "Remove the specified ACL users and the associated rules",
            "O(1) amortized time considering the typical user.",
        ),
    Command::new("acl|dryrun", -4, ADMIN | NOSCRIPT | LOADING | STALE, SECRET)
        .syntax("<username> <command> [<arg>...]")
        .documented(
            "server",
            "7.0.0",
            "Returns whether the user can execute the given command without executing the command.",
            "O(1).",
        ),
    Command::new("acl|genpass", -2, NOSCRIPT | LOADING | STALE, SECRET).syntax("[<bits:integer>]").documented(
        "server",
        "6.0.0",
        "Generate a pseudorandom secure password to use for ACL users",
        "O(1)",
    ),
    Command::new("acl|getuser", 3, ADMIN | NOSCRIPT | LOADING | STALE, SECRET).syntax("<username>").documented(
        "server",
        "6.0.0",
        "Get the rules for a specific ACL user",
        "O(N). Where N is the number of password, command and pattern rules that the user has.",
    ),
    Command::new("acl|help", 2, LOADING | STALE, SECRET).documented(
        "server",
        "6.0.0",
        "Show helpful text about the different subcommands",
        "O(1)",
    ),
    Command::new("acl|list", 2, ADMIN | NOSCRIPT | LOADING | STALE, SECRET).documented(
        "server",
        "6.0.0",
        "List the current ACL rules in ACL config file format",
        "O(N). Where N is the number of configured users.",
    ),
    Command::new("acl|load", 2, ADMIN | NOSCRIPT | LOADING | STALE, SECRET).alone().documented(
        "server",
        "6.0.0",
        "Reload the ACLs from the configured ACL file",
        "O(N). Where N is the number of configured users.",
    ),
    Command::new("acl|log", -2, ADMIN | NOSCRIPT | LOADING | STALE, on(Kind::Other, OthersRequests).hides_from(2))
        .syntax("[operation(<count:integer>|RESET)]")
        .documented(
            "server",
            "6.0.0",
            "List latest events denied because of ACLs in place",
            "O(N) with N being the number of entries shown.",
        ),
    Command::new("acl|save", 2, ADMIN | NOSCRIPT | LOADING | STALE, SECRET).documented(
        "server",
        "6.0.0",
        "Save the current ACL rules in the configured ACL file",
        "O(N). Where N is the number of configured users.",
    ),
    Command::new("acl|setuser", -3, ADMIN | NOSCRIPT | LOADING | STALE, SECRET)
        .alone()
        .syntax("<username> [<rule>...]")
        .documented(
            "server",
            "6.0.0",
            "Modify or create the rules for a specific ACL user",
            "O(N). Where N is the number of rules provided.",
        ),
    Command::new("acl|users", 2, ADMIN | NOSCRIPT | LOADING | STALE, SECRET).documented(
        "server",
        "6.0.0",
        "List the username of all the configured ACL rules",
        "O(N). Where N is the number of configured users.",
    ),
    Command::new("acl|whoami", 2, NOSCRIPT | LOADING | STALE, SECRET).documented(
        "server",
        "6.0.0",
        "Return the name of the user associated to the current connection",
        "O(1)",
    ),
];
