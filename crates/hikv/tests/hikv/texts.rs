//! Every error of the library: its text is plain, names no command of the program, and does not repeat the text of its
//! source.

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;

use hikv::dump::DumpError;
use hikv::repair::{RepairError, RepairReport};
use hikv::{BackupError, Damage, Durability, EngineKind, Error, MediumError, OpenError};
use journal::JournalError;
use pmem_os::MapError;

type AnyError = Box<dyn std::error::Error>;

/// Words to replace by the noun or verb that they hide.
const EXCLUDED: [&str; 18] = [
    "tell",
    "tells",
    "told",
    "nobody",
    "somebody",
    "whoever",
    "anew",
    "meanwhile",
    "besides",
    "thereby",
    "mended",
    "errand",
    "letter",
    "desk",
    "premises",
    "lend",
    "lent",
    "too",
];

/// First words of a text that describes no thing and no action.
const QUESTIONS: [&str; 6] = ["what", "how", "where", "which", "whether", "who"];

fn path() -> PathBuf {
    PathBuf::from("/data/store")
}

fn refusal() -> io::Error {
    io::Error::other("the device is on fire")
}

fn errors() -> Vec<(&'static str, &'static str, Vec<AnyError>)> {
    fn boxed<E: std::error::Error + 'static>(errors: Vec<E>) -> Vec<AnyError> {
        errors.into_iter().map(|error| Box::new(error) as AnyError).collect()
    }
    let engine = include_str!("../../../engine/src/error.rs");
    let medium = || Error::Medium(MediumError::Os { errno: 5 });
    let map = || MapError::Io { path: path(), doing: "map", source: refusal() };
    vec![
        (
            "Error",
            engine,
            boxed(vec![
                Error::KeyTooLong { len_bytes: 70_000 },
                Error::ValueTooLong { len_bytes: 1 << 31 },
                Error::BatchTooLong { len_bytes: 1 << 31 },
                Error::ExpiryTooLate { seconds: u64::MAX },
                Error::ConditionFailed { condition: 0 },
                Error::Source(refusal()),
                medium(),
                Error::Medium(MediumError::Full { wanted_bytes: 4096 }),
                Error::Medium(MediumError::Limit { wanted_bytes: 4096, limit_bytes: 2048 }),
                Error::Corrupt { offset: 4096, what: "an item's checksum differs" },
                Error::NoMemory { wanted_bytes: 4096 },
                Error::NotOrderedYet { done: 1, total: 2 },
                Error::Unsupported { engine: "rewo-hash", what: "order" },
                Error::CursorForgotten { number: 7 },
                Error::NoOrder,
                Error::SnapshotLive { count: 2 },
                Error::InsideCallback,
                Error::Conflict,
                Error::Contended { attempts: 8 },
                Error::InsideTransaction,
                Error::NoSuchTree { name: "jobs".into() },
                Error::TreeExists { name: "jobs".into() },
                Error::TreeName { name: "hikv:jobs".into(), why: "names that begin with hikv: are reserved" },
                Error::BatchExceedsMemory { len_bytes: 64 << 20, memory_bytes_max: 64 << 20 },
                Error::TreeBusy { name: "jobs".into() },
                Error::TypeMismatch { stored: "u64 to text".into(), asked: "u64 to u64".into() },
                Error::NotOfType { type_name: "u64".into(), bytes: "seven".into() },
                Error::TooManyTrees { limit: 65_000 },
                Error::StillOpen { kept_by: "2 handles".into() },
                Error::TooManySnapshots { count: 7 },
                Error::NotANumber { value: "seven".to_owned() },
                Error::Overflow { number: 7, by: i64::MAX },
                Error::Durability { wanted: Durability::Power, given: Durability::Process, medium: "tmpfs" },
                Error::Forked,
                Error::HalfWay,
            ]),
        ),
        (
            "OpenError",
            include_str!("../../src/error.rs"),
            boxed(vec![
                OpenError::Missing { path: path() },
                OpenError::NotADirectory { path: path() },
                OpenError::Locked { path: path(), holder: "process 7".to_owned() },
                OpenError::Unusable { path: path(), error: engine::OpenError::Thread(refusal()) },
                OpenError::Map(map()),
                OpenError::Map(MapError::Addresses { path: path(), wanted_bytes: 4096, source: refusal() }),
                OpenError::Journal { path: path(), error: JournalError::Unfinished },
                OpenError::Journal {
                    path: path(),
                    error: JournalError::Memory { wanted_bytes: 4096, source: refusal() },
                },
                OpenError::Durability {
                    path: path(),
                    wanted: Durability::Power,
                    given: Durability::Process,
                    why: "tmpfs is volatile".to_owned(),
                },
                OpenError::EngineNotBuilt { engine: EngineKind::Ink },
                OpenError::Option { what: "a region of 2 TiB: the limit is 1 TiB".to_owned() },
                OpenError::Io { path: path(), doing: "open", source: refusal() },
            ]),
        ),
        (
            "BackupError",
            include_str!("../../src/backup_error.rs"),
            boxed(vec![
                BackupError::Exists { path: path() },
                BackupError::Occupied { path: path(), why: "it is not a directory".to_owned() },
                BackupError::Place { path: path(), why: "it is a symbolic link" },
                BackupError::Damaged {
                    path: path(),
                    damage: vec![Damage { offset: 64, what: "a torn item".to_owned() }],
                },
                BackupError::Open(OpenError::Map(map())),
                BackupError::Read(Error::Source(refusal())),
                BackupError::Write { path: path(), error: medium() },
                BackupError::Stream(refusal()),
                BackupError::Stopped,
            ]),
        ),
        (
            "DumpError",
            include_str!("../../src/dump/error.rs"),
            boxed(vec![
                DumpError::NotADump,
                DumpError::Newer { found: 9, supported: 1 },
                DumpError::UnknownFlags { flags: 4 },
                DumpError::Damaged { offset: 64, what: "a block's checksum differs" },
                DumpError::Truncated { offset: 64 },
                DumpError::Input { offset: 64, source: refusal() },
            ]),
        ),
        (
            "RepairError",
            include_str!("../../src/repair.rs"),
            boxed(vec![
                RepairError::From(OpenError::Missing { path: path() }),
                RepairError::Taken { path: path() },
                RepairError::Occupied { path: path(), why: "it is not a directory".to_owned() },
                RepairError::Into(OpenError::Io { path: path(), doing: "create", source: refusal() }),
                RepairError::Unsupported { path: path(), engine: "ink".to_owned() },
                RepairError::Write(medium()),
                RepairError::Stopped { report: RepairReport::default() },
            ]),
        ),
    ]
}

/// Returns the names of an enumeration's variants, from its source.
fn variants<'s>(source: &'s str, name: &str) -> BTreeSet<&'s str> {
    let head = format!("pub enum {name} {{\n");
    let (_, body) = source.split_once(&head).expect("the source has the enumeration");
    let (body, _) = body.split_once("\n}\n").expect("it has an end");
    let names =
        body.lines().filter_map(|line| line.strip_prefix("    ").filter(|line| line.starts_with(char::is_uppercase)));
    names.map(|line| line.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default()).collect()
}

#[test]
fn list_has_every_variant() {
    for (name, source, errors) in errors() {
        let texts: Vec<String> = errors.iter().map(|error| format!("{error:?}")).collect();
        let listed = texts.iter().filter_map(|text| text.split(|c: char| !c.is_alphanumeric()).next()).collect();
        assert_eq!(variants(source, name), listed, "{name}");
    }
}

#[test]
fn texts_are_plain_and_name_no_command() {
    for error in errors().iter().flat_map(|(_, _, errors)| errors) {
        let text = error.to_string();
        let lower = text.to_lowercase();
        let words: Vec<&str> = lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
        let excluded: Vec<_> = EXCLUDED.iter().filter(|word| words.contains(word)).collect();
        assert!(excluded.is_empty(), "{excluded:?} in: {text}");
        assert!(!QUESTIONS.contains(&words[0]), "{text}");
        assert!(!text.contains("`hikv ") && !text.contains("--"), "a command's name: {text}");
        assert!(!text.ends_with('.') && !text.contains('\n'), "{text}");
    }
}

#[test]
fn text_does_not_repeat_its_source() {
    for error in errors().iter().flat_map(|(_, _, errors)| errors) {
        let text = error.to_string();
        let mut source = error.source();
        while let Some(inner) = source {
            assert!(!text.contains(&inner.to_string()), "{text}: {inner}");
            source = inner.source();
        }
    }
}
