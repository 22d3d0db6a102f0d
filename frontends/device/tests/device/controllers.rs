//! Obligations of a controller: lines of `conformance`.

use std::io::Read;

use device::{Config, limits};
use device_client::{Host, StoreIf, Wire, discover_at};
use nvme::{
    Admin, ConnectData, ControllerKind, DISCOVERY_NQN, Data, Digests, Fabrics, Feature, Health, Kv, Pdu, Property,
    Ready, Sgl, Status, StatusRegister,
};

use crate::support::{Bench, completion, directory, key, note, refused, run, run_raw, send, status_of};

fn identify(page: u8, command_set: u8) -> Admin {
    Admin::Identify { page, command_set }
}

pub(crate) fn discovery(bench: &Bench) {
    let log = discover_at(&bench.endpoint()).expect("the device answers");
    let entries: Vec<_> = log.entries.iter().map(|entry| (&*entry.subsystem, entry.addr)).collect();
    assert_eq!(entries, [(&*bench.subsystem, bench.addr)]);
}

pub(crate) fn discovery_controller(bench: &Bench) {
    let host = Host::new();
    let mut controller =
        device_client::Controller::connect(bench.endpoint(), Digests::default(), &host, DISCOVERY_NQN, 0)
            .expect("it connects");
    let identified = controller.identify().expect("the device answers");
    assert_eq!((identified.kind, &*identified.subsystem), (ControllerKind::Discovery, DISCOVERY_NQN));
    assert!(refused(&mut controller, identify(0x02, 0), 0).is(Status::INVALID_FIELD));
    assert!(status_of(controller.log(0x02, 0, 512)).is(Status::INVALID_LOG_PAGE));
    let pages = controller.log(0x00, 0, 1024).expect("the device answers");
    assert_eq!([0x00, 0x01, 0x02, 0x70].map(|page| pages[4 * page]), [1, 1, 0, 1]);
    assert!(status_of(controller.queue(1, 8)).is(Status::CONNECT_INVALID));
    controller.keep_alive().expect("it hears");
    // It does not become endless, either.
    controller
        .admin(Admin::SetFeature { number: Feature::KEEP_ALIVE, value: 0, save: false }, 0, 0)
        .expect("the device accepts it");
    let response = controller
        .admin(Admin::GetFeature { number: Feature::KEEP_ALIVE, select: 0 }, 0, 0)
        .expect("the device answers");
    assert_eq!(response.result, 120_000);
}

pub(crate) fn properties(bench: &Bench) {
    let host = Host::new();
    let mut controller = bench.controller_of(&host, 0);
    let capabilities = controller.property(Property::Capabilities).expect("the device answers");
    assert_eq!(capabilities & 0xffff, u64::from(limits::QUEUE_ENTRIES_MAX) - 1);
    assert_eq!(capabilities >> (37 + 6) & 1, 1, "several command sets");
    assert_eq!(controller.property(Property::Version).expect("the device answers"), 0x0002_0000);
    let status = |controller: &mut device_client::Controller| {
        StatusRegister::of_bits(controller.property(Property::Status).expect("the device answers") as u32)
    };
    assert!(status(&mut controller).is_ready);
    let mut queue = controller.queue(1, 8).expect("it connects");
    run(&mut queue, Kv::Flush, &[], 0);
    // A shutdown completes immediately; a reset closes queues, and the controller can be enabled again.
    controller.set(Property::Configuration, 0x46_4061).expect("the device accepts it");
    assert_eq!(status(&mut controller).shutdown, nvme::ShutdownState::Complete);
    controller.set(Property::Configuration, 0).expect("the device accepts it");
    assert_eq!(status(&mut controller), StatusRegister::default());
    assert!(queue.complete().is_err(), "the queue is closed");
    controller.set(Property::Configuration, nvme::Configuration::ENABLED.0.into()).expect("the device accepts it");
    let mut queue = controller.queue(1, 8).expect("it connects");
    assert!(run(&mut queue, Kv::Flush, &[], 0).status.is_success());
    for wrong in [Property::Capabilities, Property::Version, Property::Status] {
        assert!(status_of(controller.set(wrong, 1)).is(Status::INVALID_FIELD));
    }
    let unknown = Fabrics::PropertyGet { offset: 0x24, len_bytes: 4 };
    assert!(run_raw(&mut controller.admin, unknown.command(0), &[], 0).status.is(Status::INVALID_FIELD));
}

pub(crate) fn shutdown(bench: &Bench) {
    const NORMAL: u64 = 1 << 14;
    let mut controller = bench.controller();
    let mut queue = controller.queue(1, 8).expect("it connects");
    assert!(run(&mut queue, Kv::Flush, &[], 0).status.is_success());
    // A value that was requested before arrives too late.
    let store = Kv::Store { key: key("k"), value_bytes: 4, when: StoreIf::Always };
    let command = store.command(7, 1).with_sgl(Sgl::Transport { len_bytes: 4 });
    queue.wire().write(|writer, out| writer.command(out, &command, &[]));
    let ready = queue.wire().receive(|pdu| match pdu {
        Pdu::Ready(ready) => Ok(ready),
        other => panic!("{other:?}"),
    });
    let Ready { id, tag, .. } = ready.expect("it asks");
    controller
        .set(Property::Configuration, u64::from(nvme::Configuration::ENABLED.0) | NORMAL)
        .expect("the device accepts it");
    let data = Data { id, tag, offset: 0, is_last: true, is_success: false, bytes: b"late" };
    queue.wire().write(|writer, out| writer.data(out, &data));
    assert!(completion(queue.wire()).status.is(Status::COMMAND_SEQUENCE_ERROR));
    assert!(run(&mut queue, store, b"late", 0).status.is(Status::COMMAND_SEQUENCE_ERROR));
    assert!(status_of(controller.queue(2, 8)).is(Status::COMMAND_SEQUENCE_ERROR));
    assert!(refused(&mut controller, Admin::KeepAlive, 0).is(Status::COMMAND_SEQUENCE_ERROR));
    assert_eq!(bench.store.len().expect("it counts"), 0);
    let status = StatusRegister::of_bits(controller.property(Property::Status).expect("the device answers") as u32);
    assert_eq!(status.shutdown, nvme::ShutdownState::Complete, "properties are read as before");
    for configuration in [0, nvme::Configuration::ENABLED.0] {
        controller.set(Property::Configuration, configuration.into()).expect("the device accepts it");
    }
    let mut queue = controller.queue(1, 8).expect("it connects");
    assert!(run(&mut queue, store, b"next", 0).status.is_success(), "a reset makes it ready again");
}

/// Two paths of one host, and another host: each sees the others' data, and survives their end.
pub(crate) fn paths(bench: &Bench) {
    const SEVERAL_CONTROLLERS: u8 = 2;
    let (host, other) = (Host::new(), Host::new());
    let mut paths = [&host, &host, &other].map(|host| bench.controller_of(host, 0));
    let page = paths[0].admin(identify(0x01, 0), 0, 4096).expect("the device answers").data;
    assert_eq!(page[76], SEVERAL_CONTROLLERS);
    assert_eq!(
        paths[0].admin(identify(0x08, 1), 1, 4096).expect("the device answers").data[1],
        1,
        "the namespace is shared"
    );
    let mut queues = [0, 1, 2].map(|number: usize| paths[number].queue(1, 8).expect("it connects"));
    let numbers = [0, 1, 2].map(|number: usize| paths[number].admin.controller);
    let store = |number: u8| Kv::Store { key: key([number]), value_bytes: 1, when: StoreIf::Always };
    for (number, queue) in queues.iter_mut().enumerate() {
        assert!(run(queue, store(number as u8), b"v", 0).status.is_success());
    }
    let [first, mut second, mut third] = queues;
    // One path is cut: both of its connections.
    let [admin, _kept, _other] = paths;
    drop((first, admin));
    for queue in [&mut second, &mut third] {
        for number in 0..3 {
            let retrieve = Kv::Retrieve { key: key([number]), buffer_bytes: 1 };
            assert_eq!(run(queue, retrieve, &[], 1).data, b"v");
        }
    }
    let again = bench.controller_of(&host, 0);
    assert!(!numbers.contains(&again.admin.controller), "a number comes again late");
    assert!(run(&mut again.queue(1, 8).expect("it connects"), store(3), b"v", 0).status.is_success());
}

pub(crate) fn connect(bench: &Bench) {
    const ANY: u16 = ConnectData::ANY_CONTROLLER;
    let host = Host::new();
    let name = &bench.subsystem;
    let refusal = |subsystem: &str, queue, entry_count| status_of(bench.connect(&host, subsystem, queue, entry_count));
    assert!(refusal("nqn.2014-08.org.nvmexpress:another", (ANY, 0), 32).is(Status::CONNECT_INVALID));
    assert!(refusal("", (ANY, 0), 32).is(Status::CONNECT_INVALID));
    assert!(refusal(name, (7, 0), 32).is(Status::CONNECT_INVALID), "a controller that is named");
    assert!(refusal(name, (7, 1), 32).is(Status::CONNECT_INVALID), "no such controller");
    assert!(refusal(name, (ANY, 0), 0).is(Status::CONNECT_INVALID), "no entries");
    let mut wire = Wire::open(bench.endpoint(), Digests::default()).expect("it connects");
    let connect = Fabrics::Connect(nvme::Connect { queue: 0, queue_entries: 31, keep_alive_ms: 0, attributes: 0 });
    let mut command = connect.command(1).with_sgl(Sgl::InCapsule { offset: 0, len_bytes: ConnectData::BYTES as u32 });
    command.0[40] = 1;
    let data = ConnectData { host_id: host.id, controller: ANY, subsystem: name.clone(), host: host.name.clone() };
    assert!(send(&mut wire, &command, &data.encode()).status.is(Status::CONNECT_FORMAT), "another format");
    assert!(send(&mut wire, &command, &data.encode()[..512]).status.is(Status::CONNECT_FORMAT));
    command.0[40] = 0;
    assert!(send(&mut wire, &command, &data.encode()[..512]).status.is(Status::CONNECT_INVALID), "half its data");
    assert!(send(&mut wire, &command, &data.encode()).status.is_success(), "it may be tried again");
    let controller = bench.controller_of(&host, 0);
    let number = controller.admin.controller;
    let _queue = controller.queue(1, 8).expect("it connects");
    assert!(refusal(name, (number, 1), 8).is(Status::CONNECT_BUSY), "it is connected");
    let other_number = Host { id: [1; 16], ..host.clone() };
    assert!(status_of(bench.connect(&other_number, name, (number, 2), 8)).is(Status::HOST_ID_INCONSISTENT));
    assert!(status_of(bench.connect(&Host::new(), name, (number, 2), 8)).is(Status::CONNECT_INVALID));
}

pub(crate) fn order(bench: &Bench) {
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
    // The configuration of a host that supports only the block command set is refused.
    let blocks = Fabrics::PropertySet { offset: 0x14, len_bytes: 4, value: 0x46_0001 };
    assert!(run_raw(&mut admin, blocks.command(0), &[], 0).status.is(Status::INVALID_FIELD));
}

pub(crate) fn identify_controller(bench: &Bench) {
    let mut controller = bench.controller();
    let identified = controller.identify().expect("the device answers");
    assert_eq!(identified.kind, ControllerKind::Io);
    assert_eq!(identified.controller, controller.admin.controller);
    assert_eq!(identified.subsystem, bench.subsystem);
    assert_eq!(identified.capsule_bytes_max, 8192);
    assert_eq!(4096 << identified.transfer_max, limits::VALUE_BYTES_MAX);
    assert_eq!((identified.command_count_max, identified.event_count_max), (128, 4));
    assert!(identified.model.contains("pmekv"), "{}", identified.model);
}

pub(crate) fn identify_pages(bench: &Bench) {
    let mut controller = bench.controller();
    let mut page = |admin, namespace| controller.admin(admin, namespace, 4096).expect("the device answers").data;
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
    let namespace = controller.identify_namespace(1).expect("the device answers");
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

pub(crate) fn logs(bench: &Bench) {
    let mut client = bench.client();
    client.store("k", "v").expect("it stores");
    client.retrieve("k").expect("it reads");
    let mut controller = bench.controller();
    let supported = controller.log(0x00, 0, 1024).expect("the device answers");
    let pages: Vec<usize> = (0..256).filter(|page| supported[4 * page] & 1 != 0).collect();
    assert_eq!(pages, [0x00, 0x01, 0x02, 0x03, 0x05, 0x12, 0x13]);
    for page in 0..=u8::MAX {
        let is_there = controller.log(page, 0, 64).is_ok();
        assert_eq!(is_there, pages.contains(&page.into()), "page {page:#x}");
    }
    let features = controller.log(0x12, 0, 1024).expect("the device answers");
    let scope = |number: u8| u32::from_le_bytes(*features[4 * usize::from(number)..].first_chunk().expect("a dword"));
    assert_eq!([scope(0x07), scope(0x20), scope(0x06), scope(0x01)], [0x20_0001, 0x10_0001, 0x20_0001, 0]);
    assert_eq!(controller.log(0x13, 0, 4096).expect("the device answers"), [0; 4096]);
    assert_eq!(controller.log(0x01, 0, 64).expect("the device answers"), [0; 64]);
    let health = Health::decode(&controller.log(0x02, 0, 512).expect("the device answers"));
    assert_eq!((health.read_count, health.write_count, health.is_spare_low), (1, 1, false));
    assert_eq!(health.threshold_percent, limits::SPARE_PERCENT_MIN);
    assert_eq!(controller.log(0x03, 0, 512).expect("the device answers")[0], 1);
    let effects = controller.log(0x05, 0, 4096).expect("the device answers");
    assert_eq!(controller.log(0x05, 1028, 4).expect("the device answers"), effects[1028..1032]);
    assert_eq!(effects[1028], 3, "store changes contents");
    assert!(status_of(controller.log(0x70, 0, 1024)).is(Status::INVALID_LOG_PAGE));
    assert!(status_of(controller.log(0x02, 513, 4)).is(Status::INVALID_FIELD));
    assert!(status_of(controller.log(0x02, 0, 2 << 20)).is(Status::INVALID_FIELD));
}

pub(crate) fn features(bench: &Bench) {
    let mut controller = bench.controller();
    let set = |number, value| Admin::SetFeature { number, value, save: false };
    let get = |number, select| Admin::GetFeature { number, select };
    assert_eq!(controller.set_queue_count(4).expect("the device accepts it"), 4);
    assert_eq!(controller.set_queue_count(1000).expect("the device accepts it"), limits::QUEUE_COUNT_MAX);
    assert!(refused(&mut controller, set(Feature::QUEUE_COUNT, 0xffff), 0).is(Status::INVALID_FIELD));
    for (number, value) in [(Feature::EVENTS, 9), (Feature::KEEP_ALIVE, 60_000), (Feature::KEY_VALUE, 1)] {
        let mut response = |select| controller.admin(get(number, select), 1, 0).expect("the device answers").result;
        let can = if number == Feature::KEY_VALUE { 6 } else { 4 };
        assert_eq!([response(0), response(1), response(3)], [0, 0, can], "feature {number:#x}");
        controller.admin(set(number, value), 1, 0).expect("the device accepts it");
        assert_eq!(controller.admin(get(number, 0), 1, 0).expect("the device answers").result, u64::from(value));
    }
    assert!(refused(&mut controller, set(Feature::KEY_VALUE, 2), 1).is(Status::INVALID_FIELD));
    assert!(refused(&mut controller, set(0x01, 1), 0).is(Status::INVALID_FIELD));
    assert!(refused(&mut controller, get(0x01, 0), 0).is(Status::INVALID_FIELD));
    let saved = Admin::SetFeature { number: Feature::EVENTS, value: 0, save: true };
    assert!(refused(&mut controller, saved, 0).is(Status::NOT_SAVEABLE));
    let _queue = controller.queue(1, 8).expect("it connects");
    assert!(refused(&mut controller, set(Feature::QUEUE_COUNT, 0), 0).is(Status::COMMAND_SEQUENCE_ERROR));
}

pub(crate) fn write_cache(asked: &Bench) {
    let set = Admin::SetFeature { number: Feature::WRITE_CACHE, value: 0, save: false };
    let get = |select| Admin::GetFeature { number: Feature::WRITE_CACHE, select };
    // This one's completions survive the end of the process only.
    let mut controller = asked.controller();
    assert!(controller.identify().expect("the device answers").has_volatile_cache);
    let response = [0, 1, 3].map(|select| controller.admin(get(select), 0, 0).expect("the device answers").result);
    assert_eq!(response, [1, 1, 0], "it is in use, and cannot be changed");
    assert!(refused(&mut controller, set, 0).is(Status::NOT_CHANGEABLE));
    // This one's survive a power failure, if there is a disk.
    let dir = tempfile::tempdir_in(".").expect("a directory");
    let Ok(store) = hikv::Options::new().durability(hikv::Durability::Power).open(dir.path()) else { return };
    let bench = Bench::of(dir, store, Config::default()).by_shm(asked.by_shm);
    let mut controller = bench.controller();
    assert!(!controller.identify().expect("the device answers").has_volatile_cache);
    assert!(refused(&mut controller, get(0), 0).is(Status::INVALID_FIELD));
    assert!(refused(&mut controller, set, 0).is(Status::INVALID_FIELD));
}

pub(crate) fn feature_of_namespace(asked: &Bench) {
    let dir = directory();
    let options = hikv::Options::new().engine(hikv::EngineKind::Pmekv).durability(hikv::Durability::Process);
    let started = || {
        let store = options.clone().open(dir.path()).expect("a store");
        Bench::of(directory(), store, Config::default()).by_shm(asked.by_shm)
    };
    let set = |value| Admin::SetFeature { number: Feature::KEY_VALUE, value, save: false };
    let get = Admin::GetFeature { number: Feature::KEY_VALUE, select: 0 };
    for (value, namespace) in [(1, 1), (0, u32::MAX)] {
        let device = started();
        let mut controller = device.controller();
        for wrong in [0, 2] {
            assert!(refused(&mut controller, set(value), wrong).is(Status::INVALID_NAMESPACE));
            assert!(refused(&mut controller, get, wrong).is(Status::INVALID_NAMESPACE));
        }
        controller.admin(set(value), namespace, 0).expect("the device accepts it");
        drop((controller, device));
        let again = started();
        let mut controller = again.controller();
        assert_eq!(controller.admin(get, 1, 0).expect("the device answers").result, u64::from(value));
        let deleted = again.client().delete("missing");
        assert_eq!(deleted.is_err(), value == 1, "{deleted:?}");
        assert_eq!(again.client().list("").expect("it lists"), Vec::<Vec<u8>>::new(), "no host sees where it is kept");
    }
}

pub(crate) fn keep_alive(bench: &Bench) {
    let mut controller = bench.controller_of(&Host::new(), 0);
    let mut queue = controller.queue(1, 8).expect("it connects");
    let silent = Admin::SetFeature { number: Feature::KEEP_ALIVE, value: 50, save: false };
    controller.admin(silent, 0, 0).expect("the device accepts it");
    // Neither sends anything more, and both are closed.
    assert_eq!(queue.wire().socket().read(&mut [0; 8]).expect("it is closed in order"), 0);
    assert_eq!(controller.admin.wire().socket().read(&mut [0; 8]).expect("it is closed in order"), 0);
}

pub(crate) fn events(_: &Bench) {
    // One item uses more than nine tenths of this.
    let bench = Bench::with(Config { capacity_bytes: 100, ..Config::default() }, hikv::Options::new());
    bench.store.put("k", [1; 1000]).expect("it stores");
    let mut controller = bench.controller();
    let ids: Vec<u16> = (0..4).map(|_| controller.admin.submit(Admin::AwaitEvent.command(0, 0), &[], 0)).collect();
    let fifth = controller.admin.submit(Admin::AwaitEvent.command(0, 0), &[], 0);
    let completed = controller.admin.complete_one(fifth).expect("it is completed");
    note(completed.status);
    assert!(completed.status.is(Status::ASYNC_LIMIT_EXCEEDED));
    let wanted = Admin::SetFeature { number: Feature::EVENTS, value: 1, save: false };
    controller.admin(wanted, 0, 0).expect("the device accepts it");
    for id in &ids[..2] {
        let event = controller.admin.complete_one(*id).expect("it is completed");
        assert_eq!((event.status.is_success(), event.result), (true, 0x02_0201), "spare below its threshold");
        // It is reported again after its page was read.
        assert!(Health::decode(&controller.log(0x02, 0, 512).expect("the device answers")).is_spare_low);
    }
}

pub(crate) fn abort(bench: &Bench) {
    let mut controller = bench.controller();
    let id = controller.admin.submit(Admin::AwaitEvent.command(0, 0), &[], 0);
    let completed = controller.admin(Admin::Abort { queue: 0, id }, 0, 0).expect("it is done");
    assert_eq!(completed.result, 1, "it was not aborted");
}

pub(crate) fn queue_limits(bench: &Bench) {
    let controller = bench.controller();
    let queues: Vec<_> =
        (1..=limits::QUEUE_COUNT_MAX).map(|number| controller.queue(number, 4).expect("it connects")).collect();
    assert!(status_of(controller.queue(limits::QUEUE_COUNT_MAX + 1, 4)).is(Status::CONNECT_INVALID));
    drop(queues);
    let controller = bench.controller();
    assert!(controller.queue(1, limits::QUEUE_ENTRIES_MAX).is_ok());
    assert!(status_of(controller.queue(2, limits::QUEUE_ENTRIES_MAX + 1)).is(Status::CONNECT_INVALID));
}

pub(crate) fn hosts(_: &Bench) {
    let host = Host::new();
    let config = Config { hosts: vec![host.name.clone()], ..Config::default() };
    let bench = Bench::with(config, hikv::Options::new());
    let queue = (ConnectData::ANY_CONTROLLER, 0);
    assert!(bench.connect(&host, &bench.subsystem, queue, 32).is_ok());
    let other = bench.connect(&Host::new(), &bench.subsystem, queue, 32);
    assert!(status_of(other).is(Status::CONNECT_INVALID_HOST));
}
