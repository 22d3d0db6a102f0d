//! Obligations of the transport of key commands: lines of `conformance`.

use device_client::{Controller, Host, StoreIf};
use nvme::{Data, Digests, Kv, Pdu, Ready, Sgl, Status};

use crate::support::{Bench, completion, key, run, send};

/// The value of the first is requested, and it continues.
pub(crate) fn same_identifier(bench: &Bench) {
    let controller = bench.controller();
    let mut queue = controller.queue(1, 8).expect("it connects");
    let value = vec![7; 9000];
    let store = Kv::Store { key: key("k"), value_bytes: 9000, when: StoreIf::Always };
    let command = store.command(7, 1).with_sgl(Sgl::Transport { len_bytes: 9000 });
    let wire = queue.wire();
    wire.write(|writer, out| writer.command(out, &command, &[]));
    let ready = wire.receive(|pdu| match pdu {
        Pdu::Ready(ready) => Ok(ready),
        other => panic!("{other:?}"),
    });
    let Ready { id, tag, .. } = ready.expect("the first is asked for its value");
    assert!(send(wire, &command, &[]).status.is(Status::COMMAND_ID_CONFLICT));
    wire.write(|writer, out| {
        let data = Data { id, tag, offset: 0, is_last: true, is_success: false, bytes: &value };
        writer.data(out, &data);
    });
    assert!(send(wire, &Kv::Flush.command(8, 1), &[]).status.is_success(), "the store");
    assert_eq!(bench.store.get("k").expect("it reads"), Some(value.into()));
}

pub(crate) fn descriptors(bench: &Bench) {
    let controller = bench.controller();
    let mut queue = controller.queue(1, 8).expect("it connects");
    let store = Kv::Store { key: key("k"), value_bytes: 8, when: StoreIf::Always }.command(0, 1);
    let retrieve = Kv::Retrieve { key: key("k"), buffer_bytes: 8 }.command(0, 1);
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
        assert!(send(queue.wire(), &command, b"12345678").status.is(status), "{sgl:?}");
    }
    // Less data than described.
    let sgl = Sgl::InCapsule { offset: 0, len_bytes: 8 };
    assert!(send(queue.wire(), &store.with_sgl(sgl), b"1234").status.is(Status::SGL_LENGTH_INVALID));
    assert_eq!(bench.store.len().expect("it counts"), 0);
}

pub(crate) fn ready_to_transfer(bench: &Bench) {
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
        let retrieve = Kv::Retrieve { key: key([number as u8]), buffer_bytes: 1 << 20 };
        let completed = run(&mut queue, retrieve, &[], 1 << 20);
        assert_eq!(completed.result, len as u64);
        assert!(completed.data == value(number));
    }
}

/// Corrupted data is not stored, and the connection continues: in a capsule, and after a request for data.
pub(crate) fn corrupt_data(bench: &Bench) {
    let digests = Digests { header: false, data: true };
    let host = Host::new();
    let controller = Controller::connect(bench.endpoint(), digests, &host, &bench.subsystem, 0).expect("it connects");
    let mut queue = controller.queue(1, 8).expect("it connects");
    let store = |len_bytes| Kv::Store { key: key("k"), value_bytes: len_bytes, when: StoreIf::Always };
    let capsule = store(4).command(1, 1).with_sgl(Sgl::InCapsule { offset: 0, len_bytes: 4 });
    let wire = queue.wire();
    let spoil = |bytes: &mut Vec<u8>| *bytes.last_mut().expect("a digest") ^= 1;
    wire.write(|writer, out| {
        writer.command(out, &capsule, b"lost");
        spoil(out);
    });
    assert!(completion(wire).status.is(Status::TRANSIENT_TRANSPORT_ERROR));
    // The first of two parts is corrupted, and the second is still received.
    let command = store(8).command(2, 1).with_sgl(Sgl::Transport { len_bytes: 8 });
    wire.write(|writer, out| writer.command(out, &command, &[]));
    let ready = wire.receive(|pdu| match pdu {
        Pdu::Ready(ready) => Ok(ready),
        other => panic!("{other:?}"),
    });
    let Ready { id, tag, .. } = ready.expect("it asks");
    let part = |offset, bytes| Data { id, tag, offset, is_last: offset > 0, is_success: false, bytes };
    wire.write(|writer, out| {
        writer.data(out, &part(0, b"lost"));
        spoil(out);
        writer.data(out, &part(4, b"lost"));
    });
    assert!(completion(wire).status.is(Status::TRANSIENT_TRANSPORT_ERROR));
    assert_eq!(bench.store.len().expect("it counts"), 0);
    assert!(run(&mut queue, store(4), b"kept", 0).status.is_success(), "the same queue goes on");
}

pub(crate) fn digests(bench: &Bench) {
    for (header, data) in [(true, false), (false, true), (true, true)] {
        let options = device_client::Options { digests: Digests { header, data }, ..device_client::Options::default() };
        let mut client = bench.client_with(options);
        for len in [0, 5, 8192, 100_000] {
            client.store("k", vec![len as u8; len]).expect("it stores");
            assert_eq!(client.retrieve("k").expect("it reads"), Some(vec![len as u8; len]));
        }
        assert_eq!(client.list("").expect("it lists"), [b"k"]);
    }
}
