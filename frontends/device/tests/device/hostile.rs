//! Hosts that violate the protocol: they get an error or a closed connection, and other hosts are served as before.
//!
//! The long forms: `cargo test --release -p hikv-device --test device -- --ignored`.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use device::limits;
use device_client::{Error, Stream, Wire};
use nvme::{Command, Data, Digests, Kv, Pdu, Ready, Sgl, Status, StoreIf};

use crate::support::{Bench, completion, key};

/// Number of connections with random bytes and PDUs in a run.
const CONNECTION_COUNT: u64 = 300;
const CONNECTION_COUNT_LONG: u64 = 30_000;

/// Reads until the device closes, and returns the bytes.
fn rest_of(mut socket: TcpStream) -> Vec<u8> {
    let mut said = Vec::new();
    match socket.read_to_end(&mut said) {
        Err(error) if error.kind() != ErrorKind::ConnectionReset => panic!("{error}"),
        _ => said,
    }
}

/// Returns the cause in the final Terminate.
fn cause_of(said: &[u8]) -> Option<u16> {
    let start = (0..said.len()).find(|at| said[*at..].starts_with(&[3, 0, 24]))?;
    Some(u16::from_le_bytes(*said[start + 8..].first_chunk()?))
}

/// Returns the cause with which the device ends a connection that begins with these bytes.
fn ended_by(bench: &Bench, bytes: &[u8]) -> Option<u16> {
    let mut socket = TcpStream::connect(bench.addr).expect("it listens");
    socket.write_all(bytes).expect("it takes them");
    cause_of(&rest_of(socket))
}

fn first_words() -> Vec<u8> {
    let mut bytes = vec![0; 128];
    (bytes[2], bytes[4]) = (128, 128);
    bytes
}

/// Returns the cause with which an I/O queue is ended when these bytes arrive.
fn queue_ended_by(bench: &Bench, write: impl FnOnce(&mut Wire)) -> u16 {
    let controller = bench.controller();
    let mut queue = controller.queue(1, 8).expect("it connects");
    write(queue.wire());
    loop {
        match queue.wire().receive(|_| Ok(())) {
            Ok(()) => {}
            Err(Error::Terminated { cause, .. }) => return cause,
            Err(error) => panic!("{error}"),
        }
    }
}

fn store_of(len_bytes: u32) -> Command {
    let store = Kv::Store { key: key("k"), value_bytes: len_bytes, when: StoreIf::Always };
    store.command(7, 1).with_sgl(Sgl::Transport { len_bytes })
}

#[test]
fn wrong_first_words_end_a_connection() {
    let bench = Bench::new();
    let with = |at: usize, value: u8| {
        let mut bytes = first_words();
        bytes[at] = value;
        ended_by(&bench, &bytes)
    };
    assert_eq!(with(0, 0x99), Some(1), "its kind");
    assert_eq!(with(0, 0x01), Some(1), "the other side's");
    assert_eq!(with(2, 64), Some(1), "its header's length");
    assert_eq!(with(4, 127), Some(1), "its length");
    assert_eq!(with(7, 0x80), Some(1), "its length");
    assert_eq!(with(8, 1), Some(6), "its version");
    assert_eq!(with(10, 32), Some(1), "its alignment");
    assert_eq!(ended_by(&bench, &[first_words(), first_words()].concat()), Some(2), "it comes again");
    let mut command = vec![0; 72];
    (command[0], command[2], command[4]) = (4, 72, 72);
    assert_eq!(ended_by(&bench, &command), Some(2), "a command comes first");
    assert_eq!(ended_by(&bench, b"GET / HTTP/1.1\r\n\r\n"), Some(1));
    bench.is_alive();
}

#[test]
fn unrequested_data_ends_a_queue() {
    let bench = Bench::new();
    let data = |id, tag, offset, bytes| Data { id, tag, offset, is_last: true, is_success: false, bytes };
    let sent = |data: Data<'_>| {
        queue_ended_by(&bench, |wire| {
            wire.write(|writer, out| writer.command(out, &store_of(4), &[]));
            let ready = wire.receive(|pdu| match pdu {
                Pdu::Ready(ready) => Ok(ready),
                other => panic!("{other:?}"),
            });
            let Ready { tag, .. } = ready.expect("it asks");
            let data = Data { tag: tag.wrapping_add(data.tag), ..data };
            wire.write(|writer, out| writer.data(out, &data));
        })
    };
    assert_eq!(sent(data(7, 1, 0, b"four")), 1, "a tag that was not given");
    assert_eq!(sent(data(8, 0, 0, b"four")), 1, "another command's");
    assert_eq!(sent(data(7, 0, 1, b"four")), 4, "another place");
    assert_eq!(sent(data(7, 0, 0, b"fives")), 4, "too much");
    assert_eq!(sent(data(7, 0, 0, b"two")), 1, "it is not the last");
    let replayed = queue_ended_by(&bench, |wire| {
        wire.write(|writer, out| writer.command(out, &store_of(4), &[]));
        let tag = wire.receive(|pdu| match pdu {
            Pdu::Ready(ready) => Ok(ready.tag),
            other => panic!("{other:?}"),
        });
        let data = data(7, tag.expect("it asks"), 0, b"four");
        (0..2).for_each(|_| wire.write(|writer, out| writer.data(out, &data)));
    });
    assert_eq!(replayed, 1, "it comes once more");
    assert_eq!(bench.store.get("k").expect("it reads").as_deref(), Some(&b"four"[..]), "the first time it counted");
    bench.is_alive();
}

#[test]
fn more_commands_than_entries_end_a_queue() {
    let bench = Bench::new();
    let cause = queue_ended_by(&bench, |wire| {
        // The first uses all the space for values; the others wait behind it.
        for id in 0..20u16 {
            wire.write(|writer, out| writer.command(out, &store_of(1 << 20).with_id(id), &[]));
        }
    });
    assert_eq!(cause, 2);
    bench.is_alive();
}

/// A header with a wrong digest cannot be trusted, so it ends the connection. Corrupted data affects only its command.
#[test]
fn corrupt_header_ends_connection() {
    let bench = Bench::new();
    for (digests, is_header) in
        [(Digests { header: true, data: false }, true), (Digests { header: false, data: true }, false)]
    {
        let mut wire = Wire::open(bench.addr, digests).expect("it connects");
        let mut bytes = Vec::new();
        wire.writer.command(&mut bytes, &Command::new(0x7f, 1, 0), b"data");
        let corrupt = if is_header { 20 } else { bytes.len() - 1 };
        bytes[corrupt] ^= 1;
        wire.socket().write_all(&bytes).expect("it takes them");
        if is_header {
            match wire.receive(|_| Ok(())) {
                Err(Error::Terminated { cause: 3, .. }) => {}
                other => panic!("{other:?}"),
            }
        } else {
            assert!(completion(&mut wire).status.is(Status::TRANSIENT_TRANSPORT_ERROR));
        }
    }
    bench.is_alive();
}

/// A host that sends and never reads is stopped at the output limit, and others are served.
#[test]
fn non_reading_host_stalls_no_other() {
    let bench = Bench::new();
    bench.store.put("k", vec![1; 1 << 20]).expect("it stores");
    let controller = bench.controller();
    let mut queue = controller.queue(1, 128).expect("it connects");
    for _ in 0..100 {
        queue.submit(Kv::Retrieve { key: key("k"), buffer_bytes: 1 << 20 }.command(0, 1), &[], 1 << 20);
    }
    queue.wire().send().expect("it takes them");
    bench.is_alive();
    // When it finally reads, it gets everything.
    for _ in 0..100 {
        assert_eq!(queue.complete().expect("it is completed").data.len(), 1 << 20);
    }
}

/// Half a PDU, and then nothing, on the maximum number of connections. Existing ones continue, and further ones are
/// closed immediately.
fn half_open(bench: &Bench, count: usize) {
    let mut client = bench.client();
    client.store("k", "v").expect("it stores");
    let idle: Vec<TcpStream> = (0..count)
        .map(|number| {
            let mut socket = TcpStream::connect(bench.addr).expect("it listens");
            socket.write_all(&first_words()[..number % 128]).expect("it takes them");
            socket
        })
        .collect();
    assert_eq!(client.retrieve("k").expect("it reads").as_deref(), Some(&b"v"[..]));
    drop(idle);
    bench.is_alive();
}

#[test]
fn half_open_connections_block_no_host() {
    half_open(&Bench::new(), 100);
}

#[test]
#[ignore = "as many files as a process may have, perhaps"]
fn maximum_connections_block_no_host() {
    let bench = Bench::new();
    let mut client = bench.client();
    client.store("k", "v").expect("it stores");
    let mut sockets: Vec<TcpStream> =
        (0..limits::CONNECTION_COUNT_MAX + 8).map(|_| TcpStream::connect(bench.addr).expect("it listens")).collect();
    // The client's two, and the accepted ones: the last ones were closed.
    let last = sockets.pop().expect("there are many");
    assert!(rest_of(last).is_empty());
    assert_eq!(client.retrieve("k").expect("it reads").as_deref(), Some(&b"v"[..]));
}

/// Connections that send nearly valid data.
fn chance(seed: u64, count: u64) {
    let bench = Bench::new();
    let mut random = fastrand::Rng::with_seed(seed);
    for _ in 0..count {
        let mut socket = TcpStream::connect(bench.addr).expect("it listens");
        let mut bytes = if random.u8(..8) == 0 { Vec::new() } else { first_words() };
        let mut pdus = Vec::new();
        let writer = nvme::Writer { reader: nvme::Side::Controller, digests: Digests::default(), alignment: 0 };
        for _ in 0..random.usize(..5) {
            let mut entry = [0; 64];
            entry.iter_mut().for_each(|byte| *byte = if random.bool() { random.u8(..) } else { 0 });
            if random.bool() {
                entry[0] = 0x7f;
            }
            writer.command(&mut pdus, &Command(entry), &vec![random.u8(..); random.usize(..2000)]);
        }
        if !pdus.is_empty() {
            (0..random.usize(..4)).for_each(|_| {
                let at = random.usize(..pdus.len());
                pdus[at] = random.u8(..);
            });
        }
        bytes.extend_from_slice(&pdus);
        // The device may have closed by then.
        let _ = socket.write_all(&bytes);
        let _ = socket.shutdown(std::net::Shutdown::Write);
        rest_of(socket);
    }
    bench.is_alive();
}

#[test]
fn chance_ends_connections_and_no_device() {
    chance(1, CONNECTION_COUNT);
}

#[test]
#[ignore = "many minutes"]
fn random_input_only_ends_connections_for_long() {
    (0..10).for_each(|seed| chance(seed, CONNECTION_COUNT_LONG));
}

/// A shared-memory host overwrites the memory arbitrarily, including the device's words: its connection ends, or
/// nothing happens, and others are served.
#[test]
fn host_that_forges_shared_memory_harms_itself() {
    let bench = Bench::new().by_shm(true);
    let mut client = bench.client();
    let mut random = fastrand::Rng::with_seed(2);
    for turn in 0..200 {
        let mut wire = Wire::open(&*bench.shm, Digests::default()).expect("it connects");
        let Stream::Shm(end) = wire.socket() else { panic!("it shares memory") };
        end.set_timeout(Some(Duration::from_secs(5)));
        for _ in 0..random.usize(1..4) {
            let value = match random.u8(..4) {
                0 => random.u64(..),
                1 => random.u64(..1 << 18),
                2 => u64::MAX - random.u64(..100),
                _ => 1,
            };
            end.forge(random.bool(), random.usize(..4), value);
        }
        // Random bytes, which wake the device.
        let bytes: Vec<u8> = (0..random.usize(..2000)).map(|_| random.u8(..)).collect();
        let _ = end.write(&bytes);
        let _ = end.close();
        assert!(!client.exists("k").expect("it is served"), "turn {turn}");
    }
    bench.is_alive();
}

/// Positions that keep changing while the device reads.
#[test]
fn place_beyond_ring_ends_connection() {
    let bench = Bench::new().by_shm(true);
    let mut wire = Wire::open(&*bench.shm, Digests::default()).expect("it connects");
    let Stream::Shm(end) = wire.socket() else { panic!("it shares memory") };
    end.write_all(b"x").expect("there is space");
    end.forge(true, 0, 1 << 40);
    end.write_all(b"y").expect("there is space");
    end.forge(true, 0, 1 << 40);
    let mut rest = Vec::new();
    loop {
        // The device checks when it is woken, and may have checked before the position was forged.
        end.forge(true, 2, 1);
        let _ = end.write(b"z");
        end.forge(true, 0, 1 << 40);
        end.set_timeout(Some(Duration::from_millis(20)));
        match end.read_to_end(&mut rest) {
            Ok(_) => break,
            Err(error) => assert_eq!(error.kind(), ErrorKind::TimedOut),
        }
    }
    bench.is_alive();
}
