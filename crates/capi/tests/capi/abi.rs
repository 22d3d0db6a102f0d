//! The ABI is the recorded one: `crates/capi/abi.txt` has a line for each function, constant and member of a structure
//! that programs may have been compiled with, and `crates/capi/libhikv1.symbols` the release that brought each symbol.

use std::collections::BTreeSet;
use std::fs;

use crate::header::{STRUCTURES, constants, declared, header, members};
use crate::library::source;

/// Returns the lines of the ABI that a header declares.
fn lines(header: &str) -> BTreeSet<String> {
    let functions = declared(header).into_iter().map(|(name, signature)| format!("function {name}: {signature}"));
    let constants = constants(header).into_iter().map(|(name, value)| format!("constant HIKV_{name} = {value}"));
    let members = STRUCTURES.into_iter().flat_map(|structure| {
        let members = members(header, structure).into_iter().enumerate();
        members.map(move |(number, (name, ty))| format!("member {number} of {structure}: {ty} {name}"))
    });
    functions.chain(constants).chain(members).collect()
}

fn recorded(file: &str) -> String {
    fs::read_to_string(source().join(file)).expect("the record is read")
}

/// Compares a header with the record: the lines that it breaks, and those that the record lacks.
fn compared(header: &str) -> (Vec<String>, Vec<String>) {
    let (current, record) = (lines(header), recorded("abi.txt").lines().map(str::to_owned).collect::<BTreeSet<_>>());
    (record.difference(&current).cloned().collect(), current.difference(&record).cloned().collect())
}

#[test]
fn nothing_recorded_has_changed() {
    let (broken, new) = compared(&header());
    assert_eq!(broken, Vec::<String>::new(), "a program that was compiled earlier breaks");
    assert_eq!(new, Vec::<String>::new(), "additions go into abi.txt");
}

/// The comparison finds each kind of change.
#[test]
fn changes_of_each_kind_are_found() {
    let header = header();
    for (old, new, found) in [
        ("int hikv_sync(hikv_store *store);", "", "function hikv_sync: int (hikv_store *)"),
        ("int hikv_sync(hikv_store *store);", "int hikv_sync(void);", "function hikv_sync: int (hikv_store *)"),
        ("HIKV_ABSENT = 1", "HIKV_ABSENT = 4", "constant HIKV_ABSENT = 1"),
        ("const void *data; size_t len;", "size_t len; const void *data;", "member 1 of hikv_slice: size_t len"),
    ] {
        assert_eq!(header.matches(old).count(), 1, "'{old}' is declared");
        let (broken, _) = compared(&header.replace(old, new));
        assert!(broken.contains(&found.to_owned()), "{broken:?}");
    }
    let longer =
        header.replace("typedef struct hikv_transact_options { ", "typedef struct hikv_transact_options { int new; ");
    assert!(!compared(&longer).0.is_empty(), "a member at the start moves the others");
}

#[test]
fn the_record_of_symbols_has_each_function() {
    let symbols = recorded("libhikv1.symbols");
    let mut lines = symbols.lines();
    assert_eq!(lines.next(), Some("libhikv.so.1 libhikv1 #MINVER#"));
    let names = lines.map(|line| {
        let (symbol, version) = line.trim_start().split_once(' ').expect("a symbol has the version that brought it");
        assert!(version.starts_with(|c: char| c.is_ascii_digit()), "{line}");
        symbol.split_once('@').expect("a symbol has a version").0.to_owned()
    });
    let names: Vec<String> = names.filter(|name| !name.starts_with("HIKV_")).collect();
    assert_eq!(names, declared(&header()).into_keys().collect::<Vec<_>>());
}
