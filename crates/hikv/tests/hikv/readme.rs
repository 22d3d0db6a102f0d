//! Compares the README, the limits and the 'coming from' pages with the code: programs, number of tests, engines,
//! limits.

use std::path::Path;
use std::{fs, io};

use heap::layout::{BATCH_WORD_COUNT, REGION_BYTES_MAX};
use hikv::{EngineKind, Limits};

const README: &str = include_str!("../../../../README.md");
const LIMITS: &str = include_str!("../../../../docs/limits.md");
const COMING_FROM: &str = include_str!("../../../../docs/coming-from.md");

#[test]
fn pages_show_the_first_program() {
    let program = include_str!("../../examples/first.rs");
    let shown = &program[program.find("use hikv").expect("the program uses hikv")..];
    for (name, page) in [("README.md", README), ("docs/coming-from.md", COMING_FROM)] {
        assert!(page.contains(&format!("```rust\n{shown}```")), "{name} shows another program than examples/first.rs");
    }
}

#[test]
fn page_shows_the_program_of_two_trees() {
    let program = include_str!("../../examples/two_trees.rs");
    let (_, from_types) = program.split_once("\nconst TODO").expect("the program has types");
    let (shown, _) = from_types.split_once("\nfn main").expect("the program has a main function");
    let shown = format!("```rust\nconst TODO{}\n```", shown.trim_end());
    assert!(COMING_FROM.contains(&shown), "docs/coming-from.md shows another program than examples/two_trees.rs");
}

fn tests_below(dir: &Path) -> io::Result<usize> {
    let mut count = 0;
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() {
            count += tests_below(&path)?;
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            count += fs::read_to_string(&path)?.lines().filter(|line| line.trim() == "#[test]").count();
        }
    }
    Ok(count)
}

#[test]
fn readme_counts_no_more_tests_than_exist() {
    let (_, after) = README.split_once("More than ").expect("README.md has a count of tests");
    let (count, _) = after.split_once(" tests").expect("README.md has a count of tests");
    let count: usize = count.replace(',', "").parse().unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folders = ["bench", "crates", "frontends", "testing", "xtask"];
    let found: usize = folders.iter().map(|folder| tests_below(&root.join(folder)).unwrap()).sum();
    assert!(found > count && found < 2 * count, "README.md has more than {count} tests; there are {found}");
}

#[test]
fn readme_has_a_row_for_each_engine() {
    let rows: Vec<&str> = README.lines().filter(|line| line.starts_with("| `")).collect();
    let engines: Vec<_> = EngineKind::ALL.iter().filter(|kind| kind.name() != "toy").collect();
    assert_eq!(rows.len(), engines.len(), "{rows:?}");
    engines.iter().for_each(|kind| assert!(rows.iter().any(|row| row.contains(&format!("`{kind}`"))), "{kind}"));
}

#[test]
fn pages_state_the_limits_of_the_library() {
    assert_eq!((Limits::KEY_BYTES_MAX, Limits::VALUE_BYTES_MAX, REGION_BYTES_MAX), (65_535, 1 << 30, 1 << 40));
    assert!(README.contains("- Keys: 65,535 bytes. Values: 1 GiB;") && README.contains("- Stores: 1 TiB;"));
    assert_eq!((Limits::BATCH_BYTES_MAX, Limits::BATCH_OP_BYTES, BATCH_WORD_COUNT), (1 << 30, 512, 16));
    let rows = [
        "| key | 65,535 bytes |",
        "| value | 1 GiB; ",
        "| batch | 1 GiB: keys, values, and 512 bytes for each operation",
        "| batches carried out at the same time | 16;",
        "| store | 1 TiB |",
    ];
    rows.iter().for_each(|row| assert!(LIMITS.contains(row), "docs/limits.md lacks '{row}'"));
    assert_eq!((Limits::MOVED_VALUE_BYTES_MAX, pmem_os::KEPT_BYTES), (256 << 10, 32 << 30));
    assert!(
        LIMITS.contains("more than 256 KiB are not moved")
            && LIMITS.contains("reserves 32 GiB of the process's addresses")
    );
}
