//! The test suites that judge the mutants of each crate.

use std::path::Path;

/// A test program: cargo's arguments to build it, and its own arguments.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Suite {
    pub(super) package: &'static str,
    pub(super) target: &'static [&'static str],
    pub(super) arguments: &'static [&'static str],
}

/// Tests of broken variants take long and detect no mutant that the same tests without a broken variant miss.
pub(super) const HUNTS: &str = "caught";

const fn lib(package: &'static str) -> Suite {
    Suite { package, target: &["--lib"], arguments: &[] }
}

const fn test(package: &'static str, target: &'static [&'static str]) -> Suite {
    Suite { package, target, arguments: &[] }
}

/// A library's tests without the model checkers, which take long and rarely detect an omitted step: they find wrong
/// orderings.
const fn plain(package: &'static str) -> Suite {
    Suite { arguments: &["--skip", "interleavings", "--skip", "::ring::"], ..lib(package) }
}

/// The tests of one folder.
const fn part(package: &'static str, arguments: &'static [&'static str]) -> Suite {
    Suite { arguments, ..lib(package) }
}

const fn modelled(package: &'static str) -> Suite {
    Suite { arguments: &["interleavings", "::ring::"], ..lib(package) }
}

const fn explored(arguments: &'static [&'static str]) -> Suite {
    Suite { arguments, ..test("hikv-testkit", &["--test", "hikv"]) }
}

const COPIES: Suite = Suite { arguments: &["backup::", "dumps::", "latest::", "few::", "ordered::"], ..LIBRARY };
const DEVICE: Suite = test("hikv-device", &["--test", "device"]);
const ENGINE: Suite = test("hikv-engine-hikv", &["--test", "engine"]);
const HEAP: Suite = test("hikv-heap", &["--test", "heap"]);
const HEAP_QUICK: Suite = Suite { arguments: &["--skip", "crash::every_crash"], ..HEAP };
const INK: Suite = test("hikv-engine-ink", &["--test", "ink"]);
const LIBRARY: Suite = test("hikv", &["--test", "hikv"]);
const CONTENTION: Suite = test("hikv", &["--test", "contention"]);
const JOURNAL: Suite = test("hikv-testkit", &["--test", "journal"]);
const JOURNALED: Suite = Suite { arguments: &["journaled", "killed", "backup"], ..LIBRARY };
const PBTREE: Suite = test("hikv-pbtree", &["--test", "pbtree"]);
const PMEKV: Suite = test("hikv-engine-pmekv", &["--test", "pmekv"]);
const REWO: Suite = test("hikv-engine-rewo-hash", &["--test", "rewo"]);
const SPACE: Suite = test("hikv-engine-hikv", &["--test", "space"]);
const SERVER: Suite = test("hikv-server", &["--test", "server"]);
const UNDO_LOG: Suite = test("hikv-undo-log", &["--test", "undo_log"]);
const TRACED: Suite = Suite {
    arguments: &["backup::", "durability::", "failing", "interrupted::", "new_files::", "new_names::", "repair::"],
    ..test("hikv-cli", &["--test", "program"])
};

/// Explorations that reach most steps of the protocols, followed by those of rarer scripts.
const EXPLORED: Suite = explored(&["everyday", "clear_and_reopen", "several_puts", "batches::they_survive_whole"]);
const EXPLORED_FULL: Suite = explored(&["full_medium", "growth", "without_space", "in_order", "expire", "go_by"]);
const EXPLORED_SPLITS: Suite = explored(&["split_survives", "one_line", "abandoned", "around_split"]);
const EXPLORED_REST: Suite = explored(&["closes", "compactions", "snapshots", "deferred", "journaled", "killed"]);

/// A crate with mutants, or a folder or file in a crate, with the crate's tests and those of crates above, the
/// narrowest first.
pub(super) struct Judges {
    /// Its path in the repository.
    place: &'static str,
    /// Suites that take seconds.
    pub(super) quick: &'static [Suite],
    pub(super) slow: &'static [Suite],
}

/// Returns the judges of a step's file.
pub(super) fn of(file: &Path) -> &'static Judges {
    JUDGES.iter().find(|judges| file.starts_with(judges.place)).expect("its crate is listed")
}

/// Lists the folders of the crates with mutants.
pub(super) fn packages() -> impl Iterator<Item = &'static str> {
    JUDGES.iter().map(|judges| judges.place).filter(|place| !place.contains("/src/"))
}

const INDEX_SLOW: &[Suite] =
    &[plain("hikv-engine-hikv"), ENGINE, modelled("hikv-index"), EXPLORED, EXPLORED_SPLITS, CONTENTION, EXPLORED_REST];

/// Folders and files come before their crate.
const JUDGES: [Judges; 20] = [
    Judges {
        place: "crates/epoch",
        quick: &[lib("hikv-epoch"), test("hikv-epoch", &["--test", "alone"])],
        slow: &[lib("hikv-engine-hikv"), CONTENTION],
    },
    Judges { place: "crates/index/src/block_hash", quick: &[part("hikv-index", &["block_hash::"]), REWO], slow: &[] },
    Judges { place: "crates/index/src/bplus_tree", quick: &[part("hikv-index", &["bplus_tree::"])], slow: INDEX_SLOW },
    Judges {
        place: "crates/index/src/partitioned_hash",
        quick: &[part("hikv-index", &["partitioned_hash::", "--skip", "interleavings"])],
        slow: INDEX_SLOW,
    },
    Judges {
        place: "crates/index/src/cached_table",
        quick: &[part("hikv-index", &["cached_table::", "--skip", "::ring::", "--skip", "::model::"])],
        slow: INDEX_SLOW,
    },
    Judges { place: "crates/index", quick: &[plain("hikv-index")], slow: INDEX_SLOW },
    Judges {
        place: "crates/heap",
        quick: &[lib("hikv-heap"), HEAP_QUICK],
        slow: &[HEAP, EXPLORED_FULL, EXPLORED, EXPLORED_REST],
    },
    Judges { place: "crates/undo-log", quick: &[lib("hikv-undo-log"), UNDO_LOG], slow: &[PBTREE] },
    Judges { place: "crates/pbtree", quick: &[plain("hikv-pbtree"), PBTREE], slow: &[INK] },
    Judges {
        place: "crates/engines/hikv/src/cache.rs",
        quick: &[plain("hikv-engine-hikv"), explored(&["reader_waits_for"])],
        slow: &[explored(&["cached"])],
    },
    Judges {
        place: "crates/engines/hikv",
        quick: &[plain("hikv-engine-hikv"), ENGINE, SPACE],
        slow: &[modelled("hikv-engine-hikv"), EXPLORED, EXPLORED_REST, CONTENTION, LIBRARY],
    },
    Judges { place: "crates/engines/ink", quick: &[INK], slow: &[CONTENTION] },
    Judges { place: "crates/engines/pmekv", quick: &[plain("hikv-engine-pmekv"), PMEKV], slow: &[CONTENTION] },
    Judges { place: "crates/engines/rewo-hash", quick: &[REWO], slow: &[CONTENTION] },
    Judges {
        place: "crates/journal",
        quick: &[plain("hikv-journal"), JOURNAL],
        slow: &[modelled("hikv-journal"), EXPLORED_REST, JOURNALED],
    },
    Judges { place: "crates/hikv", quick: &[lib("hikv"), COPIES, TRACED], slow: &[LIBRARY] },
    Judges { place: "frontends/device", quick: &[lib("hikv-device"), DEVICE], slow: &[] },
    Judges { place: "frontends/command-table", quick: &[lib("hikv-command-table"), SERVER], slow: &[] },
    Judges { place: "frontends/acl", quick: &[lib("hikv-acl"), SERVER], slow: &[] },
    Judges { place: "frontends/server", quick: &[lib("hikv-server"), SERVER], slow: &[] },
];
