//! What a device has to do, by the specifications it names: a list, gone through line by line.

use std::io::Read;
use std::panic::{AssertUnwindSafe, catch_unwind};

use device::{Config, limits};
use device_client::{Host, StoreIf, discover};
use nvme::{
    Admin, Command, ConnectData, ControllerKind, DISCOVERY_NQN, Digests, Fabrics, Feature, Health, Keys, Kv, Property,
    Sgl, Status, StatusRegister,
};

use crate::support::{Bench, key, refused, run, run_raw, status_of};

const LIST: &[(&str, fn(&Bench))] = &[
    ("discovery: the log names the subsystem, and where it is", discovery),
    ("discovery: its controller has pages of its own, and no queues", discovery_controller),
    ("properties: capabilities, version; enabling, shutdown, reset", properties),
    ("connect: names, queues, entries, controllers; each refusal", connect),
    ("commands come in order: connect, enable, then others", order),
    ("identify 01h: the controller, with its limits", identify_controller),
    ("identify 00h, 02h, 03h, 05h, 06h, 07h, 08h, 1Ch", identify_pages),
    ("log pages 01h, 02h, 03h, 05h, and parts of them", logs),
    ("features 07h, 0Bh, 0Fh, 20h", features),
    ("keep-alive: a controller that hears nothing ends, with its queues", keep_alive),
    ("asynchronous events: four, and told when little room is left", events),
    ("abort: not aborted", abort),
    ("store and retrieve, in the capsule and without data", store_and_retrieve),
    ("retrieve: cut to its room, with the whole length", retrieve_cut),
    ("store: if there, if absent (87h, 89h)", store_conditions),
    ("delete, exist (87h); delete of what is not there, by feature 20h", delete_and_exist),
    ("list: in order, from a key on, as many as there is room for", list),
    ("range: keys and values, and how much room the next one takes", range),
    ("flush, of the namespace and of all", flush),
    ("keys of 0 and of 17 bytes (86h)", key_sizes),
    ("values above the limit (85h)", value_sizes),
    ("a full namespace (81h)", full),
    ("other namespaces, opcodes, options and fused commands", wrong_commands),
    ("data descriptors: kinds, lengths, offsets", descriptors),
    ("R2T: values above 8 KiB, many at once, up to 1 MiB", ready_to_transfer),
    ("digests of headers, of data, of both", digests),
    ("limits: 64 queues, 128 entries, transfers", queue_limits),
    ("hosts that are not named are refused", hosts),
];

#[test]
fn conformance() {
    let failed: Vec<&str> = LIST.iter().filter(|line| !passes(line)).map(|(line, _)| *line).collect();
    assert!(failed.is_empty(), "of {}: {failed:#?}", LIST.len());
}

#[expect(clippy::print_stdout, reason = "the list is for reading")]
fn passes((line, check): &(&str, fn(&Bench))) -> bool {
    let bench = Bench::new();
    let is_passed = catch_unwind(AssertUnwindSafe(|| check(&bench))).is_ok();
    println!("{} {line}", if is_passed { "passed" } else { "FAILED" });
    is_passed
}

fn identify(page: u8, command_set: u8) -> Admin {
    Admin::Identify { page, command_set }
}

fn discovery(bench: &Bench) {
    let log = discover(bench.addr).expect("it tells");
    let entries: Vec<_> = log.entries.iter().map(|entry| (&*entry.subsystem, entry.addr)).collect();
    assert_eq!(entries, [(&*bench.subsystem, bench.addr)]);
}

fn discovery_controller(bench: &Bench) {
    let host = Host::new();
    let mut controller = device_client::Controller::connect(bench.addr, Digests::default(), &host, DISCOVERY_NQN, 0)
        .expect("it connects");
    let identified = controller.identify().expect("it tells");
    assert_eq!((identified.kind, &*identified.subsystem), (ControllerKind::Discovery, DISCOVERY_NQN));
    assert!(refused(&mut controller, identify(0x02, 0), 0).is(Status::INVALID_FIELD));
    assert!(status_of(controller.log(0x02, 0, 512)).is(Status::INVALID_LOG_PAGE));
    assert!(status_of(controller.queue(1, 8)).is(Status::CONNECT_INVALID));
    controller.keep_alive().expect("it hears");
}

fn properties(bench: &Bench) {
    let host = Host::new();
    let mut controller = bench.controller_of(&host, 0);
    let capabilities = controller.property(Property::Capabilities).expect("it tells");
    assert_eq!(capabilities & 0xffff, u64::from(limits::QUEUE_ENTRIES_MAX) - 1);
    assert_eq!(capabilities >> (37 + 6) & 1, 1, "several command sets");
    assert_eq!(controller.property(Property::Version).expect("it tells"), 0x0002_0000);
    let status = |controller: &mut device_client::Controller| {
        StatusRegister::of_bits(controller.property(Property::Status).expect("it tells") as u32)
    };
    assert!(status(&mut controller).is_ready);
    let mut queue = controller.queue(1, 8).expect("it connects");
    run(&mut queue, Kv::Flush, &[], 0);
    // A shutdown is over at once; a reset closes queues, and the controller can be enabled again.
    controller.set(Property::Configuration, 0x46_4061).expect("it is told");
    assert_eq!(status(&mut controller).shutdown, nvme::ShutdownState::Complete);
    controller.set(Property::Configuration, 0).expect("it is told");
    assert_eq!(status(&mut controller), StatusRegister::default());
    assert!(queue.complete().is_err(), "the queue is closed");
    controller.set(Property::Configuration, nvme::Configuration::ENABLED.0.into()).expect("it is told");
    let mut queue = controller.queue(1, 8).expect("it connects");
    assert!(run(&mut queue, Kv::Flush, &[], 0).status.is_success());
    for wrong in [Property::Capabilities, Property::Version, Property::Status] {
        assert!(status_of(controller.set(wrong, 1)).is(Status::INVALID_FIELD));
    }
    let unknown = Fabrics::PropertyGet { offset: 0x24, len_bytes: 4 };
    assert!(run_raw(&mut controller.admin, unknown.command(0), &[], 0).status.is(Status::INVALID_FIELD));
}

fn connect(bench: &Bench) {
    const ANY: u16 = ConnectData::ANY_CONTROLLER;
    let host = Host::new();
    let name = &bench.subsystem;
    let refusal = |subsystem: &str, queue, entry_count| status_of(bench.connect(&host, subsystem, queue, entry_count));
    assert!(refusal("nqn.2014-08.org.nvmexpress:another", (ANY, 0), 32).is(Status::CONNECT_INVALID));
    assert!(refusal("", (ANY, 0), 32).is(Status::CONNECT_INVALID));
    assert!(refusal(name, (7, 0), 32).is(Status::CONNECT_INVALID), "a controller that is named");
    assert!(refusal(name, (7, 1), 32).is(Status::CONNECT_INVALID), "no such controller");
    assert!(refusal(name, (ANY, 0), 0).is(Status::CONNECT_INVALID), "no entries");
    let controller = bench.controller_of(&host, 0);
    let number = controller.admin.controller;
    let _queue = controller.queue(1, 8).expect("it connects");
    assert!(refusal(name, (number, 1), 8).is(Status::CONNECT_BUSY), "it is connected");
    let other_number = Host { id: [1; 16], ..host.clone() };
    assert!(status_of(bench.connect(&other_number, name, (number, 2), 8)).is(Status::HOST_ID_INCONSISTENT));
    assert!(status_of(bench.connect(&Host::new(), name, (number, 2), 8)).is(Status::CONNECT_INVALID));
}

fn order(bench: &Bench) {
    let host = Host::new();
    let mut admin = bench.connect(&host, &bench.subsystem, (ConnectData::ANY_CONTROLLER, 0), 32).expect("it connects");
    let early = Admin::KeepAlive.command(0, 0);
    assert!(run_raw(&mut admin, early, &[], 0).status.is(Status::COMMAND_SEQUENCE_ERROR), "it is not enabled");
    let number = admin.controller;
    assert!(status_of(bench.connect(&host, &bench.subsystem, (number, 1), 8)).is(Status::COMMAND_SEQUENCE_ERROR));
    let again = Fabrics::Connect(nvme::Connect { queue: 0, queue_entries: 31, keep_alive_ms: 0, attributes: 0 });
    let data =
        ConnectData { host_id: host.id, controller: 0xffff, subsystem: bench.subsystem.clone(), host: host.name };
    let status = run_raw(&mut admin, again.command(0), &data.encode(), 0).status;
    assert!(status.is(Status::COMMAND_SEQUENCE_ERROR), "it is connected");
    // What a host sets that knows one command set alone, for blocks, is refused.
    let blocks = Fabrics::PropertySet { offset: 0x14, len_bytes: 4, value: 0x46_0001 };
    assert!(run_raw(&mut admin, blocks.command(0), &[], 0).status.is(Status::INVALID_FIELD));
}

fn identify_controller(bench: &Bench) {
    let mut controller = bench.controller();
    let identified = controller.identify().expect("it tells");
    assert_eq!(identified.kind, ControllerKind::Io);
    assert_eq!(identified.controller, controller.admin.controller);
    assert_eq!(identified.subsystem, bench.subsystem);
    assert_eq!(identified.capsule_bytes_max, 8192);
    assert_eq!(4096 << identified.transfer_max, limits::VALUE_BYTES_MAX);
    assert_eq!((identified.command_count_max, identified.event_count_max), (128, 4));
    assert!(identified.model.contains("pmekv"), "{}", identified.model);
}

fn identify_pages(bench: &Bench) {
    let mut controller = bench.controller();
    let mut page = |admin, namespace| controller.admin(admin, namespace, 4096).expect("it tells").data;
    assert_eq!(page(identify(0x00, 0), 1), [0; 4096]);
    assert_eq!(page(identify(0x02, 0), 0)[..8], [1, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(page(identify(0x07, 1), 0)[..8], [1, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(page(identify(0x02, 0), 1)[..4], [0; 4]);
    let names = page(identify(0x03, 0), 1);
    assert_eq!(names[4..20], bench.store.uuid());
    assert_eq!(names[20..25], [4, 1, 0, 0, 1], "its command set");
    assert_eq!(page(identify(0x06, 1), 0), [0; 4096]);
    assert_eq!(page(identify(0x08, 1), 1)[14], 1, "it is ready");
    assert_eq!(page(identify(0x1c, 0), 0)[0], 2);
    let namespace = controller.identify_namespace(1).expect("it tells");
    assert_eq!(namespace.value_bytes_max, limits::VALUE_BYTES_MAX);
    assert!(namespace.used_bytes < namespace.size_bytes);
    for (page, command_set, namespace, status) in [
        (0x05, 0, 1, Status::INVALID_FIELD),
        (0x05, 2, 1, Status::INVALID_FIELD),
        (0x06, 2, 0, Status::INVALID_FIELD),
        (0x05, 1, 2, Status::INVALID_NAMESPACE),
        (0x03, 0, 0, Status::INVALID_NAMESPACE),
        (0x02, 0, u32::MAX, Status::INVALID_NAMESPACE),
        (0x55, 0, 1, Status::INVALID_FIELD),
    ] {
        let given = refused(&mut controller, identify(page, command_set), namespace);
        assert!(given.is(status), "page {page:#x}: {given}");
    }
}

fn logs(bench: &Bench) {
    let mut client = bench.client();
    client.store("k", "v").expect("it stores");
    client.retrieve("k").expect("it reads");
    let mut controller = bench.controller();
    assert_eq!(controller.log(0x01, 0, 64).expect("it tells"), [0; 64]);
    let health = Health::decode(&controller.log(0x02, 0, 512).expect("it tells"));
    assert_eq!((health.read_count, health.write_count, health.is_spare_low), (1, 1, false));
    assert_eq!(health.threshold_percent, limits::SPARE_PERCENT_MIN);
    assert_eq!(controller.log(0x03, 0, 512).expect("it tells")[0], 1);
    let effects = controller.log(0x05, 0, 4096).expect("it tells");
    assert_eq!(controller.log(0x05, 1028, 4).expect("it tells"), effects[1028..1032]);
    assert_eq!(effects[1028], 3, "store changes contents");
    assert!(status_of(controller.log(0x70, 0, 1024)).is(Status::INVALID_LOG_PAGE));
    assert!(status_of(controller.log(0x02, 513, 4)).is(Status::INVALID_FIELD));
    assert!(status_of(controller.log(0x02, 0, 2 << 20)).is(Status::INVALID_FIELD));
}

fn features(bench: &Bench) {
    let mut controller = bench.controller();
    let set = |number, value| Admin::SetFeature { number, value, save: false };
    let get = |number, select| Admin::GetFeature { number, select };
    assert_eq!(controller.set_queue_count(4).expect("it is told"), 4);
    assert_eq!(controller.set_queue_count(1000).expect("it is told"), limits::QUEUE_COUNT_MAX);
    assert!(refused(&mut controller, set(Feature::QUEUE_COUNT, 0xffff), 0).is(Status::INVALID_FIELD));
    for (number, value) in [(Feature::EVENTS, 9), (Feature::KEEP_ALIVE, 60_000), (Feature::KEY_VALUE, 1)] {
        let mut told = |select| controller.admin(get(number, select), 1, 0).expect("it tells").result;
        assert_eq!([told(0), told(1), told(3)], [0, 0, 4], "feature {number:#x}");
        controller.admin(set(number, value), 1, 0).expect("it is told");
        assert_eq!(controller.admin(get(number, 0), 1, 0).expect("it tells").result, value.into());
    }
    assert!(refused(&mut controller, set(Feature::KEY_VALUE, 2), 1).is(Status::INVALID_FIELD));
    assert!(refused(&mut controller, set(0x06, 1), 0).is(Status::INVALID_FIELD));
    assert!(refused(&mut controller, get(0x06, 0), 0).is(Status::INVALID_FIELD));
    let saved = Admin::SetFeature { number: Feature::EVENTS, value: 0, save: true };
    assert!(refused(&mut controller, saved, 0).is(Status::NOT_SAVEABLE));
    let _queue = controller.queue(1, 8).expect("it connects");
    assert!(refused(&mut controller, set(Feature::QUEUE_COUNT, 0), 0).is(Status::COMMAND_SEQUENCE_ERROR));
}

fn keep_alive(bench: &Bench) {
    let mut controller = bench.controller_of(&Host::new(), 0);
    let mut queue = controller.queue(1, 8).expect("it connects");
    let silent = Admin::SetFeature { number: Feature::KEEP_ALIVE, value: 50, save: false };
    controller.admin(silent, 0, 0).expect("it is told");
    // Neither says anything any more, and both are closed.
    assert_eq!(queue.wire().socket().read(&mut [0; 8]).expect("it is closed in order"), 0);
    assert_eq!(controller.admin.wire().socket().read(&mut [0; 8]).expect("it is closed in order"), 0);
}

fn events(_: &Bench) {
    // What one item takes is more than nine tenths of this.
    let bench = Bench::with(Config { capacity_bytes: 100, ..Config::default() }, hikv::Options::new());
    bench.store.put("k", [1; 1000]).expect("it stores");
    let mut controller = bench.controller();
    let ids: Vec<u16> = (0..4).map(|_| controller.admin.submit(Admin::AwaitEvent.command(0, 0), &[], 0)).collect();
    let fifth = controller.admin.submit(Admin::AwaitEvent.command(0, 0), &[], 0);
    let completed = controller.admin.complete_one(fifth).expect("it is completed");
    assert!(completed.status.is(Status::ASYNC_LIMIT_EXCEEDED));
    let wanted = Admin::SetFeature { number: Feature::EVENTS, value: 1, save: false };
    controller.admin(wanted, 0, 0).expect("it is told");
    for id in &ids[..2] {
        let event = controller.admin.complete_one(*id).expect("it is completed");
        assert_eq!((event.status.is_success(), event.result), (true, 0x02_0201), "spare below its threshold");
        // It is told again once its page was read.
        assert!(Health::decode(&controller.log(0x02, 0, 512).expect("it tells")).is_spare_low);
    }
}

fn abort(bench: &Bench) {
    let mut controller = bench.controller();
    let id = controller.admin.submit(Admin::AwaitEvent.command(0, 0), &[], 0);
    let completed = controller.admin(Admin::Abort { queue: 0, id }, 0, 0).expect("it is done");
    assert_eq!(completed.result, 1, "it was not aborted");
}

fn store_and_retrieve(bench: &Bench) {
    let mut client = bench.client();
    let values = [vec![], vec![7], vec![8; 4096], vec![9; 8192]];
    for (number, value) in values.iter().enumerate() {
        let key = vec![b'k'; number * 5 + 1];
        client.store(&key, value).expect("it stores");
        assert_eq!(client.retrieve(&key).expect("it reads").as_ref(), Some(value));
        assert_eq!(bench.store.get(&key).expect("it reads").as_ref(), Some(value), "the store has it");
    }
    client.store("k", "another").expect("it stores");
    assert_eq!(client.retrieve("k").expect("it reads").as_deref(), Some(&b"another"[..]));
    assert_eq!(client.retrieve("missing").expect("it reads"), None);
}

fn retrieve_cut(bench: &Bench) {
    let controller = bench.controller();
    let mut queue = controller.queue(1, 8).expect("it connects");
    bench.store.put("k", [5; 1000]).expect("it stores");
    for (room_bytes, given) in [(0, 0), (1, 1), (999, 999), (1000, 1000), (4096, 1000)] {
        let retrieve = Kv::Retrieve { key: key("k"), room_bytes };
        let completed = run(&mut queue, retrieve, &[], room_bytes as usize);
        assert_eq!((completed.status, completed.result), (Status::SUCCESS, 1000));
        assert_eq!(completed.data, vec![5; given]);
    }
}

fn store_conditions(bench: &Bench) {
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

fn delete_and_exist(bench: &Bench) {
    let mut client = bench.client();
    client.store("k", "v").expect("it stores");
    assert!(client.exists("k").expect("it answers"));
    client.delete("k").expect("it deletes");
    assert!(!client.exists("k").expect("it answers"));
    client.delete("k").expect("it need not be there");
    let strict = Admin::SetFeature { number: Feature::KEY_VALUE, value: 1, save: false };
    client.controller().expect("it is there").admin(strict, 1, 0).expect("it is told");
    assert!(status_of(client.delete("k")).is(Status::KEY_NOT_FOUND));
    client.store("k", "v").expect("it stores");
    client.delete("k").expect("it is there");
}

fn list(bench: &Bench) {
    let mut client = bench.client();
    let keys: Vec<Vec<u8>> = (0..100u8).map(|number| vec![number; 1 + usize::from(number % 16)]).collect();
    keys.iter().rev().for_each(|key| client.store(key, "v").expect("it stores"));
    // What the command set cannot name is left out, and hides nothing.
    for long in [vec![50; 17], vec![50; 40], vec![99; 100], vec![255; 30], vec![]] {
        bench.store.put(long, "library").expect("it stores");
    }
    assert_eq!(client.list("").expect("it lists"), keys);
    assert_eq!(client.list([40]).expect("it lists"), keys[40..]);
    assert_eq!(client.list([200]).expect("it lists"), Vec::<Vec<u8>>::new());
    let controller = bench.controller();
    let mut queue = controller.queue(1, 8).expect("it connects");
    let cut = run(&mut queue, Kv::List { from: key(""), room_bytes: 16 }, &[], 16);
    assert_eq!(Keys::new(&cut.data).collect::<Vec<_>>(), [&[0][..], &[1; 2], &[2; 3][..0]][..2]);
    assert!(cut.data.len() <= 16);
    let none = run(&mut queue, Kv::List { from: key(""), room_bytes: 3 }, &[], 3);
    assert!(none.status.is(Status::SGL_LENGTH_INVALID));
}

fn range(bench: &Bench) {
    let mut client = bench.client();
    let items: Vec<(Vec<u8>, Vec<u8>)> = (0..50u8).map(|n| (vec![n], vec![n; usize::from(n) * 7])).collect();
    items.iter().for_each(|(key, value)| client.store(key, value).expect("it stores"));
    bench.store.put([20; 20], "library").expect("it stores");
    assert_eq!(client.range("").expect("it reads"), items);
    assert_eq!(client.range([49]).expect("it reads"), items[49..]);
    assert_eq!(client.range([50]).expect("it reads"), []);
    // An item that is longer than what is asked for at first.
    client.store("long", vec![1; 300_000]).expect("it stores");
    assert_eq!(client.range("long").expect("it reads"), [(b"long".to_vec(), vec![1; 300_000])]);
    let controller = bench.controller();
    let mut queue = controller.queue(1, 8).expect("it connects");
    let cut = run(&mut queue, Kv::Range { from: key([49]), room_bytes: 100 }, &[], 100);
    assert_eq!((cut.data.len(), cut.result), (4, 4 + 8 + 1 + 343));
}

fn flush(bench: &Bench) {
    let controller = bench.controller();
    let mut queue = controller.queue(1, 8).expect("it connects");
    for namespace in [1, u32::MAX] {
        assert!(run_raw(&mut queue, Kv::Flush.command(0, namespace), &[], 0).status.is_success());
    }
}

fn key_sizes(bench: &Bench) {
    let controller = bench.controller();
    let mut queue = controller.queue(1, 8).expect("it connects");
    let k = key("k");
    for kv in [
        Kv::Store { key: k, value_bytes: 0, when: StoreIf::Always },
        Kv::Retrieve { key: k, room_bytes: 0 },
        Kv::Delete { key: k },
        Kv::Exist { key: k },
    ] {
        for len in [0, 17, 255] {
            let command = kv.command(0, 1).with_dword(11, len);
            assert!(run_raw(&mut queue, command, &[], 0).status.is(Status::INVALID_KEY_SIZE), "{kv:?} {len}");
        }
    }
    assert_eq!(bench.store.len().expect("it counts"), 0);
}

fn value_sizes(bench: &Bench) {
    let controller = bench.controller();
    let mut queue = controller.queue(1, 8).expect("it connects");
    let value_bytes = limits::VALUE_BYTES_MAX + 1;
    let store = Kv::Store { key: key("k"), value_bytes, when: StoreIf::Always };
    let value = vec![1; value_bytes as usize];
    assert!(run(&mut queue, store, &value, 0).status.is(Status::INVALID_VALUE_SIZE));
    let retrieve = Kv::Retrieve { key: key("k"), room_bytes: value_bytes };
    assert!(run(&mut queue, retrieve, &[], value_bytes as usize).status.is(Status::INVALID_FIELD));
}

fn full(_: &Bench) {
    let bench = Bench::with(Config::default(), hikv::Options::new().region_bytes_max(64 << 20));
    let mut client = bench.client();
    let refusal =
        (0..100u8).find_map(|number| client.store([number], vec![number; 1 << 20]).err()).expect("it is full");
    assert!(status_of::<()>(Err(refusal)).is(Status::CAPACITY_EXCEEDED));
    assert!(client.exists([0]).expect("it answers"), "what was stored is there");
    client.delete([0]).expect("a delete needs no room");
}

fn wrong_commands(bench: &Bench) {
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

fn descriptors(bench: &Bench) {
    let controller = bench.controller();
    let mut queue = controller.queue(1, 8).expect("it connects");
    let store = Kv::Store { key: key("k"), value_bytes: 8, when: StoreIf::Always }.command(0, 1);
    let retrieve = Kv::Retrieve { key: key("k"), room_bytes: 8 }.command(0, 1);
    for (id, (command, sgl, status)) in [
        (store, Sgl::InCapsule { offset: 1, len_bytes: 8 }, Status::SGL_OFFSET_INVALID),
        (store, Sgl::InCapsule { offset: 0, len_bytes: 7 }, Status::SGL_LENGTH_INVALID),
        (store, Sgl::Transport { len_bytes: 7 }, Status::SGL_LENGTH_INVALID),
        (store, Sgl::Other, Status::SGL_TYPE_INVALID),
        (retrieve, Sgl::InCapsule { offset: 0, len_bytes: 8 }, Status::SGL_TYPE_INVALID),
    ]
    .into_iter()
    .enumerate()
    {
        let command = command.with_id(id as u16).with_sgl(sgl);
        let wire = queue.wire();
        wire.write(|writer, out| writer.command(out, &command, b"12345678"));
        let given = wire.receive(|pdu| match pdu {
            nvme::Pdu::Completion(completion) => Ok(completion.status),
            other => panic!("{other:?}"),
        });
        assert!(given.expect("it is completed").is(status), "{sgl:?}");
    }
    // Less data than is described.
    let wire = queue.wire();
    let sgl = Sgl::InCapsule { offset: 0, len_bytes: 8 };
    wire.write(|writer, out| writer.command(out, &store.with_sgl(sgl), b"1234"));
    let given = wire.receive(|pdu| match pdu {
        nvme::Pdu::Completion(completion) => Ok(completion.status),
        other => panic!("{other:?}"),
    });
    assert!(given.expect("it is completed").is(Status::SGL_LENGTH_INVALID));
    assert_eq!(bench.store.len().expect("it counts"), 0);
}

fn ready_to_transfer(bench: &Bench) {
    let controller = bench.controller();
    let mut queue = controller.queue(1, 128).expect("it connects");
    let lens = [8193, 65_536, 65_537, 300_000, 1 << 20, 20_000, 1 << 20];
    let value = |number: usize| (0..lens[number]).map(|at| (at * 7 + number) as u8).collect::<Vec<_>>();
    let mut missing: Vec<u16> = (0..lens.len())
        .map(|number| {
            let store = Kv::Store { key: key([number as u8]), value_bytes: lens[number] as u32, when: StoreIf::Always };
            queue.submit(store.command(0, 1), &value(number), 0)
        })
        .collect();
    while !missing.is_empty() {
        let completed = queue.complete().expect("it is completed");
        assert!(completed.status.is_success());
        missing.retain(|id| *id != completed.id);
    }
    for (number, len) in lens.into_iter().enumerate() {
        let retrieve = Kv::Retrieve { key: key([number as u8]), room_bytes: 1 << 20 };
        let completed = run(&mut queue, retrieve, &[], 1 << 20);
        assert_eq!(completed.result, len as u64);
        assert!(completed.data == value(number));
    }
}

fn digests(bench: &Bench) {
    for (header, data) in [(true, false), (false, true), (true, true)] {
        let options = device_client::Options { digests: Digests { header, data }, ..device_client::Options::default() };
        let mut client = device_client::Client::connect(bench.addr, options).expect("it connects");
        for len in [0, 5, 8192, 100_000] {
            client.store("k", vec![len as u8; len]).expect("it stores");
            assert_eq!(client.retrieve("k").expect("it reads"), Some(vec![len as u8; len]));
        }
        assert_eq!(client.list("").expect("it lists"), [b"k"]);
    }
}

fn queue_limits(bench: &Bench) {
    let controller = bench.controller();
    let queues: Vec<_> =
        (1..=limits::QUEUE_COUNT_MAX).map(|number| controller.queue(number, 4).expect("it connects")).collect();
    assert!(status_of(controller.queue(limits::QUEUE_COUNT_MAX + 1, 4)).is(Status::CONNECT_INVALID));
    drop(queues);
    let controller = bench.controller();
    assert!(controller.queue(1, limits::QUEUE_ENTRIES_MAX).is_ok());
    assert!(status_of(controller.queue(2, limits::QUEUE_ENTRIES_MAX + 1)).is(Status::CONNECT_INVALID));
}

fn hosts(_: &Bench) {
    let host = Host::new();
    let config = Config { hosts: vec![host.name.clone()], ..Config::default() };
    let bench = Bench::with(config, hikv::Options::new());
    let queue = (ConnectData::ANY_CONTROLLER, 0);
    assert!(bench.connect(&host, &bench.subsystem, queue, 32).is_ok());
    let other = bench.connect(&Host::new(), &bench.subsystem, queue, 32);
    assert!(status_of(other).is(Status::CONNECT_INVALID_HOST));
}
