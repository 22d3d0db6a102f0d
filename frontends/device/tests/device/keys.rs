//! Obligations of key commands: lines of `conformance`.

use std::os::unix::fs::FileExt;

use device::{Config, limits};
use device_client::{Operation, Outcome, StoreIf};
use hikv::EngineKind;
use nvme::{Admin, Command, Fabrics, Feature, Keys, Kv, Status};

use crate::support::{Bench, directory, key, run, run_raw, status_of};

pub(crate) fn store_and_retrieve(bench: &Bench) {
    let mut client = bench.client();
    let values = [vec![], vec![7], vec![8; 4096], vec![9; 8192]];
    for (number, value) in values.iter().enumerate() {
        let key = vec![b'k'; number * 5 + 1];
        client.store(&key, value).expect("it stores");
        assert_eq!(client.retrieve(&key).expect("it reads").as_deref(), Some(&**value));
        assert_eq!(bench.store.get(&key).expect("it reads").as_deref(), Some(&**value), "the store has it");
    }
    client.store("k", "another").expect("it stores");
    assert_eq!(client.retrieve("k").expect("it reads").as_deref(), Some(&b"another"[..]));
    assert_eq!(client.retrieve("missing").expect("it reads"), None);
}

pub(crate) fn retrieve_cut(bench: &Bench) {
    let controller = bench.controller();
    let mut queue = controller.queue(1, 8).expect("it connects");
    bench.store.put("k", [5; 1000]).expect("it stores");
    for (buffer_bytes, given) in [(0, 0), (1, 1), (999, 999), (1000, 1000), (4096, 1000)] {
        let retrieve = Kv::Retrieve { key: key("k"), buffer_bytes };
        let completed = run(&mut queue, retrieve, &[], buffer_bytes as usize);
        assert_eq!((completed.status, completed.result), (Status::SUCCESS, 1000));
        assert_eq!(completed.data, vec![5; given]);
    }
}

pub(crate) fn store_conditions(bench: &Bench) {
    let mut client = bench.client();
    assert!(!client.store_if("k", "1", StoreIf::There).expect("it answers"));
    assert!(client.store_if("k", "2", StoreIf::Absent).expect("it answers"));
    assert!(!client.store_if("k", "3", StoreIf::Absent).expect("it answers"));
    assert_eq!(client.retrieve("k").expect("it reads").as_deref(), Some(&b"2"[..]));
    assert!(client.store_if("k", "4", StoreIf::There).expect("it answers"));
    assert_eq!(client.retrieve("k").expect("it reads").as_deref(), Some(&b"4"[..]));
    let controller = bench.controller();
    let mut queue = controller.queue(1, 8).expect("it connects");
    for (name, when, status) in
        [("k", StoreIf::Absent, Status::KEY_EXISTS), ("other", StoreIf::There, Status::KEY_NOT_FOUND)]
    {
        let store = Kv::Store { key: key(name), value_bytes: 1, when };
        assert!(run(&mut queue, store, b"5", 0).status.is(status));
    }
}

pub(crate) fn store_options(bench: &Bench) {
    const UNCOMPRESSED: u32 = 1 << 10;
    let controller = bench.controller();
    let mut queue = controller.queue(1, 8).expect("it connects");
    let mut store = |value: &[u8], when| {
        let command = Kv::Store { key: key("k"), value_bytes: 1, when }.command(0, 1);
        run_raw(&mut queue, command.with_dword(11, command.dword(11) | UNCOMPRESSED), value, 0).status
    };
    // Both conditions together never hold, and the status reports which one did not.
    assert!(store(b"1", StoreIf::Never).is(Status::KEY_NOT_FOUND));
    assert!(store(b"2", StoreIf::There).is(Status::KEY_NOT_FOUND));
    assert!(store(b"3", StoreIf::Always).is_success());
    assert!(store(b"4", StoreIf::Never).is(Status::KEY_EXISTS));
    assert_eq!(bench.store.get("k").expect("it reads").as_deref(), Some(&b"3"[..]));
}

pub(crate) fn delete_and_exist(bench: &Bench) {
    let mut client = bench.client();
    client.store("k", "v").expect("it stores");
    assert!(client.exists("k").expect("it answers"));
    client.delete("k").expect("it deletes");
    assert!(!client.exists("k").expect("it answers"));
    client.delete("k").expect("it need not be there");
    let strict = Admin::SetFeature { number: Feature::KEY_VALUE, value: 1, save: false };
    client.controller().expect("it is there").admin(strict, 1, 0).expect("the device accepts it");
    assert!(status_of(client.delete("k")).is(Status::KEY_NOT_FOUND));
    client.store("k", "v").expect("it stores");
    client.delete("k").expect("it is there");
}

pub(crate) fn list(bench: &Bench) {
    let mut client = bench.client();
    let keys: Vec<Vec<u8>> = (0..100u8).map(|number| vec![number; 1 + usize::from(number % 16)]).collect();
    keys.iter().rev().for_each(|key| client.store(key, "v").expect("it stores"));
    // Keys that the command set does not allow are skipped, and hide no others.
    for long in [vec![50; 17], vec![50; 40], vec![99; 100], vec![255; 30], vec![]] {
        bench.store.put(long, "library").expect("it stores");
    }
    assert_eq!(client.list("").expect("it lists"), keys);
    assert_eq!(client.list([40]).expect("it lists"), keys[40..]);
    assert_eq!(client.list([200]).expect("it lists"), Vec::<Vec<u8>>::new());
    let controller = bench.controller();
    let mut queue = controller.queue(1, 8).expect("it connects");
    let cut = run(&mut queue, Kv::List { from: key(""), buffer_bytes: 16 }, &[], 16);
    assert_eq!(Keys::new(&cut.data).collect::<Vec<_>>(), [&[0][..], &[1; 2], &[2; 3][..0]][..2]);
    assert!(cut.data.len() <= 16);
    let none = run(&mut queue, Kv::List { from: key(""), buffer_bytes: 3 }, &[], 3);
    assert!(none.status.is(Status::SGL_LENGTH_INVALID));
}

pub(crate) fn list_first(asked: &Bench) {
    let dir = directory();
    let options = hikv::Options::new().engine(EngineKind::HiKv).durability(hikv::Durability::Process);
    let store = options.open(dir.path()).expect("a store");
    let keys: Vec<Vec<u8>> = (0..20_000u32).map(|number| number.to_be_bytes().to_vec()).collect();
    keys.iter().for_each(|key| store.put(key, "v").expect("it stores"));
    let bench = Bench::of(dir, store, Config::default()).by_shm(asked.by_shm);
    let listed = bench.client().list([0, 0, 0x4e]).expect("it lists");
    assert_eq!(listed, keys[0x4e00..]);
}

pub(crate) fn range(bench: &Bench) {
    let mut client = bench.client();
    let items: Vec<(Vec<u8>, Vec<u8>)> = (0..50u8).map(|n| (vec![n], vec![n; usize::from(n) * 7])).collect();
    items.iter().for_each(|(key, value)| client.store(key, value).expect("it stores"));
    bench.store.put([20; 20], "library").expect("it stores");
    assert_eq!(client.range("").expect("it reads"), items);
    assert_eq!(client.range([49]).expect("it reads"), items[49..]);
    assert_eq!(client.range([50]).expect("it reads"), []);
    // Items longer than the initial buffer, and than the maximum.
    for len in [300_000, limits::VALUE_BYTES_MAX as usize] {
        client.store("long", vec![1; len]).expect("it stores");
        assert!(client.range("long").expect("it reads") == [(b"long".to_vec(), vec![1; len])]);
    }
    let controller = bench.controller();
    let mut queue = controller.queue(1, 8).expect("it connects");
    let cut = run(&mut queue, Kv::Range { from: key([49]), buffer_bytes: 100 }, &[], 100);
    assert_eq!((cut.data.len(), cut.result), (4, 4 + 8 + 1 + 343));
}

pub(crate) fn flush(bench: &Bench) {
    let controller = bench.controller();
    let mut queue = controller.queue(1, 8).expect("it connects");
    for namespace in [1, u32::MAX] {
        assert!(run_raw(&mut queue, Kv::Flush.command(0, namespace), &[], 0).status.is_success());
    }
}

pub(crate) fn key_sizes(bench: &Bench) {
    let controller = bench.controller();
    let mut queue = controller.queue(1, 8).expect("it connects");
    let k = key("k");
    for (kv, empty) in [
        (Kv::Store { key: k, value_bytes: 0, when: StoreIf::Always }, Status::INVALID_KEY_SIZE),
        (Kv::Retrieve { key: k, buffer_bytes: 0 }, Status::INVALID_KEY_SIZE),
        (Kv::Delete { key: k }, Status::INVALID_FIELD),
        (Kv::Exist { key: k }, Status::INVALID_FIELD),
    ] {
        for (len, expected) in [(0, empty), (17, Status::INVALID_FIELD), (255, Status::INVALID_FIELD)] {
            let command = kv.command(0, 1).with_dword(11, len);
            assert!(run_raw(&mut queue, command, &[], 0).status.is(expected), "{kv:?} {len}");
        }
    }
    let list = Kv::List { from: k, buffer_bytes: 64 }.command(0, 1).with_dword(11, 17);
    assert!(run_raw(&mut queue, list, &[], 64).status.is(Status::INVALID_FIELD));
    assert_eq!(bench.store.len().expect("it counts"), 0);
}

pub(crate) fn value_sizes(bench: &Bench) {
    let controller = bench.controller();
    let mut queue = controller.queue(1, 8).expect("it connects");
    let value_bytes = limits::VALUE_BYTES_MAX + 1;
    let store = Kv::Store { key: key("k"), value_bytes, when: StoreIf::Always };
    let value = vec![1; value_bytes as usize];
    assert!(run(&mut queue, store, &value, 0).status.is(Status::INVALID_VALUE_SIZE));
    let retrieve = Kv::Retrieve { key: key("k"), buffer_bytes: value_bytes };
    assert!(run(&mut queue, retrieve, &[], value_bytes as usize).status.is(Status::INVALID_FIELD));
    // Of a value that the library has written, a command returns the start, and a client returns no truncated value.
    bench.store.put("long", vec![1; limits::VALUE_BYTES_MAX as usize + 1]).expect("it stores");
    let mut client = bench.client();
    assert!(status_of(client.retrieve("long")).is(Status::INVALID_VALUE_SIZE));
    assert!(status_of(client.range("long")).is(Status::INVALID_VALUE_SIZE));
}

pub(crate) fn full(asked: &Bench) {
    let bench = Bench::with(Config::default(), hikv::Options::new().region_bytes_max(16 << 20)).by_shm(asked.by_shm);
    let mut client = bench.client();
    let refusal =
        (0..100u8).find_map(|number| client.store([number], vec![number; 1 << 20]).err()).expect("it is full");
    assert!(status_of::<()>(Err(refusal)).is(Status::CAPACITY_EXCEEDED));
    assert!(client.exists([0]).expect("it answers"), "what was stored is there");
    client.delete([0]).expect("a delete needs no room");
}

pub(crate) fn write_protected(asked: &Bench) {
    let dir = directory();
    let options = hikv::Options::new().engine(EngineKind::Pmekv).durability(hikv::Durability::Process);
    let store = options.clone().open(dir.path()).expect("a store");
    store.put("k", "v").expect("it stores");
    store.close().expect("it closes");
    let store = options.read_only(true).open(dir.path()).expect("a store");
    let bench = Bench::of(dir, store, Config::default()).by_shm(asked.by_shm);
    let controller = bench.controller();
    let mut queue = controller.queue(1, 8).expect("it connects");
    let key = key("k");
    let plain = Kv::Store { key, value_bytes: 1, when: StoreIf::Always };
    let conditional = Kv::Store { key, value_bytes: 1, when: StoreIf::There };
    for (kv, value) in [(plain, &b"w"[..]), (conditional, b"w"), (Kv::Delete { key }, b"")] {
        let status = run(&mut queue, kv, value, 0).status;
        assert!(status.is(Status::WRITE_PROTECTED), "{kv:?}: {status}");
    }
    assert_eq!(run(&mut queue, Kv::Retrieve { key, buffer_bytes: 1 }, &[], 1).data, b"v", "what is there is read");
}

/// Overwrites the first occurrence of these bytes in the files of an open store.
fn damage(bench: &Bench, pattern: &[u8]) {
    let files = std::fs::read_dir(bench.dir.path()).expect("a directory");
    let places = files.filter_map(|file| {
        let path = file.expect("a file").path();
        let bytes = std::fs::read(&path).ok()?;
        Some((path, bytes.windows(pattern.len()).position(|window| window == pattern)?))
    });
    let changed = places.map(|(path, at)| {
        let file = std::fs::OpenOptions::new().write(true).open(path).expect("it is there");
        file.write_all_at(&[!pattern[0]], at as u64).expect("it is written");
    });
    assert!(changed.count() > 0, "it is stored");
}

pub(crate) fn damaged(asked: &Bench) {
    let options = hikv::Options::new().tuning(|tuning| tuning.verify_reads(hikv::Verify::Values));
    let bench = Bench::with(Config::default(), options).by_shm(asked.by_shm);
    let mut client = bench.client();
    client.store("k", "a value that will be damaged").expect("it stores");
    client.store("l", "another").expect("it stores");
    damage(&bench, b"a value that will be damaged");
    assert!(status_of(client.retrieve("k")).is(Status::UNRECOVERED_ERROR));
    assert!(status_of(client.range("k")).is(Status::UNRECOVERED_ERROR));
    assert_eq!(client.retrieve("l").expect("it reads").as_deref(), Some(&b"another"[..]));
}

/// Stores that are sent together share a turn: one that finds no space is refused, the others are done exactly once. A
/// repeated store would restore a value that was replaced in between.
pub(crate) fn full_in_a_group(asked: &Bench) {
    let bench = Bench::with(Config::default(), hikv::Options::new().region_bytes_max(16 << 20)).by_shm(asked.by_shm);
    let mut client = bench.client();
    let entries = || {
        hikv::FrontEnd::of(&bench.store)
            .stats_now()
            .expect("the device answers")
            .figure("pmekv_log_entries")
            .expect("its figure")
    };
    // Only values in their capsules are grouped.
    let name = |round: u32, n: u8| [&round.to_be_bytes()[..], &[n]].concat();
    let mut is_full = false;
    for round in 0..10_000u32 {
        if is_full {
            (0..16).for_each(|n| client.delete(name(round / 2, n)).expect("a delete needs no room"));
        }
        let before = entries();
        let operations: Vec<Operation> = (0..16u8)
            .map(|n| Operation::Store {
                key: name(round, n),
                value: vec![n; if n % 2 == 0 { 1 } else { 8000 }],
                when: StoreIf::Always,
            })
            .collect();
        let outcomes = client.run(&operations).expect("it answers");
        let is_refused =
            |outcome: &Outcome| matches!(outcome, Outcome::Failed(status) if status.is(Status::CAPACITY_EXCEEDED));
        let refused = outcomes.iter().filter(|outcome| is_refused(outcome)).count();
        let done = outcomes.iter().filter(|outcome| **outcome == Outcome::Done).count();
        assert_eq!(done + refused, 16);
        assert!(entries() <= before + done as f64, "{} entries for {done} stores", entries() - before);
        is_full |= refused > 0;
        if refused > 0 && done > 0 {
            return;
        }
    }
    panic!("the region does not become full");
}

pub(crate) fn wrong_commands(bench: &Bench) {
    let controller = bench.controller();
    let mut queue = controller.queue(1, 8).expect("it connects");
    let exist = Kv::Exist { key: key("k") };
    let mut fused = exist.command(0, 1);
    fused.0[1] |= 1;
    for (command, status) in [
        (exist.command(0, 0), Status::INVALID_NAMESPACE),
        (exist.command(0, 2), Status::INVALID_NAMESPACE),
        (exist.command(0, u32::MAX), Status::INVALID_NAMESPACE),
        (Command::new(0x55, 0, 1), Status::INVALID_OPCODE),
        (exist.command(0, 1).with_dword(11, 0x101), Status::INVALID_FIELD),
        (fused, Status::INVALID_FIELD),
        (Fabrics::PropertyGet { offset: 0, len_bytes: 8 }.command(0), Status::INVALID_OPCODE),
    ] {
        let given = run_raw(&mut queue, command, &[], 0).status;
        assert!(given.is(status), "{command:?}: {given}");
    }
    let mut controller = controller;
    let unknown = run_raw(&mut controller.admin, Command::new(0x55, 0, 1), &[], 0).status;
    assert!(unknown.is(Status::INVALID_OPCODE));
}
