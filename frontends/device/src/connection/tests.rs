use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream as Plain};
use std::sync::mpsc;

use nvme::{
    Configuration, Connect, ConnectData, ControllerKind, Digests, Fabrics, InitialRequest, Key, Kv, Sgl, Side, StoreIf,
    Writer,
};

use super::*;
use crate::config::Config;
use crate::controller::Controller;
use crate::events::Events;
use crate::output::tests::ends;
use crate::stop::StopHandle;

const WRITER: Writer =
    Writer { reader: Side::Controller, digests: Digests { header: false, data: false }, alignment: 0 };
const HOST: &str = "nqn.2014-08.org.nvmexpress:host";

/// Gives turns until the sent data has arrived and was processed.
fn turns_until(connection: &mut Connection, shared: &Shared, is_there: impl Fn(&Connection) -> bool) {
    while !is_there(connection) {
        connection.is_readable = true;
        connection.execute(shared, Instant::now());
    }
}

/// Creates a store in a directory, shared with a controller that its host has enabled.
fn enabled(options: &hikv::Options) -> (tempfile::TempDir, Shared, Arc<Controller>) {
    let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a directory");
    let store = options.open(dir.path()).expect("a store");
    let (shared, controller) = offered(store);
    (dir, shared, controller)
}

/// Shares the store with a controller that its host has enabled.
fn offered(store: hikv::Store) -> (Shared, Arc<Controller>) {
    let shared = Shared::new(store, &Config::default(), Vec::new(), StopHandle::new());
    let host = (HOST.to_owned(), [7; 16]);
    let controller = shared.add_controller(ControllerKind::Io, host, 0).expect("there is space");
    controller.configure(Configuration::ENABLED).expect("it is enabled");
    (shared, controller)
}

/// Creates a queue of the controller, and its host's end.
fn connected(shared: &Shared, controller: &Controller) -> (Connection, Plain) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let mut peer = Plain::connect(listener.local_addr().expect("it listens")).expect("it listens");
    let (socket, _) = listener.accept().expect("the peer waits");
    socket.set_nonblocking(true).expect("it is a socket");
    (queue_of(shared, (controller.number, 1), Socket::Tcp(mio::net::TcpStream::from_std(socket)), &mut peer), peer)
}

/// Creates the queue of a controller for a host at the other end of this socket.
fn queue_of(shared: &Shared, (controller, queue): (u16, u16), socket: Socket, peer: &mut impl Write) -> Connection {
    let mut connection = Connection::new((socket, ([127, 0, 0, 1], 4420).into()));
    let mut bytes = Vec::new();
    let digests = Digests::default();
    WRITER.initial_request(&mut bytes, &InitialRequest { version: 0, alignment: 0, digests, ready_count_max: 0 });
    let connect = Fabrics::Connect(Connect { queue, queue_entries: 7, keep_alive_ms: 0, attributes: 0 });
    let data = ConnectData { host_id: [7; 16], controller, subsystem: shared.subsystem.clone(), host: HOST.to_owned() };
    let command = connect.command(1).with_sgl(Sgl::InCapsule { offset: 0, len_bytes: ConnectData::BYTES as u32 });
    WRITER.command(&mut bytes, &command, &data.encode());
    peer.write_all(&bytes).expect("it takes them");
    turns_until(&mut connection, shared, |connection| connection.session.queue().is_some());
    connection
}

/// Sends a store of three bytes under "k".
fn send_store(peer: &mut impl Write, value: &[u8; 3]) {
    let key = Key::new(b"k").expect("it is short");
    let command = Kv::Store { key, value_bytes: 3, when: StoreIf::Always }.command(2, 1);
    let mut bytes = Vec::new();
    WRITER.command(&mut bytes, &command.with_sgl(Sgl::InCapsule { offset: 0, len_bytes: 3 }), value);
    peer.write_all(&bytes).expect("it takes them");
}

fn head(connection: &Connection) -> Option<u16> {
    connection.session.queue().map(|queue| queue.head)
}

fn volatile() -> hikv::Options {
    hikv::Options::new().durability(hikv::Durability::Process)
}

/// A host that has reset a controller and writes again must not find the new write replaced by an abandoned one.
#[test]
fn old_queue_executes_nothing_after_reset() {
    let (_dir, shared, controller) = enabled(&volatile());
    let (mut connection, mut peer) = connected(&shared, &controller);
    send_store(&mut peer, b"old");
    for configuration in [Configuration(0), Configuration::ENABLED] {
        controller.configure(configuration).expect("it is accepted");
    }
    shared.store.put("k", "new").expect("it is written");
    turns_until(&mut connection, &shared, |connection| connection.is_broken || head(connection) == Some(1));
    assert_eq!(connection.conclude(&shared), Turn::Close);
    assert_eq!(shared.store.get("k").expect("it reads").as_deref(), Some(&b"new"[..]));
}

/// A reset waits for a command that is being executed. The callback for expired keys runs in the middle of the command.
#[test]
fn queue_holds_turn_during_command() {
    let clock = hikv::Clock::manual(1);
    let (_dir, shared, controller) = enabled(&volatile().background(false).clock(clock.clone()));
    let (mut connection, mut peer) = connected(&shared, &controller);
    shared.store.put_with("k", "old", hikv::PutOptions::new().ttl(Duration::from_millis(1))).expect("it is written");
    clock.advance(Duration::from_millis(1));
    let ((sender, receiver), asked) = (mpsc::channel(), Arc::clone(&controller));
    let callback = move |_: &[u8]| sender.send(asked.is_in_turn()).expect("it is listened to");
    shared.store.on_expired(Some(Arc::new(callback))).expect("it is accepted");
    assert!(!controller.is_in_turn());
    send_store(&mut peer, b"new");
    turns_until(&mut connection, &shared, |connection| connection.is_broken || head(connection) == Some(1));
    assert_eq!(receiver.try_iter().collect::<Vec<_>>(), [true]);
    assert!(!controller.is_in_turn());
}

/// A shared-memory host has stored data that is not durable. Returns the bytes that it receives before and after the
/// data is durable, with `then` in between. `None` if the disk has no journal.
fn output_of_store(then: impl FnOnce(&Controller, &mut rings::HostEnd)) -> Option<[(Turn, Vec<u8>); 2]> {
    let dir = tempfile::tempdir_in(".").expect("a directory");
    // Without background threads, data becomes durable only when it is waited for.
    let store = hikv::Options::new().durability(hikv::Durability::Power).background(false).open(dir.path()).ok()?;
    let (shared, controller) = offered(store);
    let (_place, socket, mut host) = ends();
    let mut connection = queue_of(&shared, (controller.number, 1), socket, &mut host);
    connection.conclude(&shared);
    host.read_exact(&mut [0; 128 + 24]).expect("it is connected");
    send_store(&mut host, b"new");
    turns_until(&mut connection, &shared, |connection| head(connection) == Some(1));
    let ticket = connection.ticket().expect("it waits for the disk");
    then(&controller, &mut host);
    turns_until(&mut connection, &shared, |connection| connection.is_ending || connection.is_broken);
    host.set_timeout(Some(Duration::ZERO));
    let mut response = |connection: &mut Connection| {
        let (turn, mut bytes) = (connection.conclude(&shared), vec![0; 1000]);
        let len = host.read(&mut bytes).unwrap_or(0);
        bytes.truncate(len);
        (turn, bytes)
    };
    let early = response(&mut connection);
    shared.store.wait(ticket).expect("the disk is well");
    Some([early, response(&mut connection)])
}

/// The completion comes first.
#[test]
fn disconnect_reason_waits_for_durability() {
    let Some([early, late]) = output_of_store(|_, host| host.write_all(&[0x99; 128]).expect("it takes them")) else {
        return;
    };
    assert_eq!(early, (Turn::Wait, Vec::new()));
    assert_eq!((late.0, late.1.len(), late.1[0], late.1[24]), (Turn::Close, 24 + 24 + 128, 5, 3), "{:?}", late.1);
}

#[test]
fn undurable_store_before_reset_is_never_completed() {
    let Some(response) = output_of_store(|controller, _| {
        controller.configure(Configuration(0)).expect("it is accepted");
    }) else {
        return;
    };
    assert_eq!(response, [(Turn::Close, Vec::new()), (Turn::Close, Vec::new())]);
}

/// A host receives nothing after the reason why its connection ends.
#[test]
fn no_event_after_the_end() {
    let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a directory");
    let store = volatile().open(dir.path()).expect("a store");
    store.put("k", "v").expect("it stores");
    let shared = Shared::new(store, &Config { capacity_bytes: 1, ..Config::default() }, Vec::new(), StopHandle::new());
    let (_place, socket, mut host) = ends();
    let mut connection = queue_of(&shared, (ConnectData::ANY_CONTROLLER, 0), socket, &mut host);
    let controller = Arc::clone(&connection.session.queue().expect("it is made").controller);
    let await_one = || {
        let mut state = controller.state();
        state.events.wanted = Events::KNOWN;
        state.events.is_read();
        state.events.wait(1).expect("there is space");
    };
    await_one();
    assert!(connection.complete_events(&shared), "little space is left");
    await_one();
    host.write_all(&[0x99; 128]).expect("it takes them");
    turns_until(&mut connection, &shared, |connection| connection.is_ending);
    assert!(!connection.complete_events(&shared));
}

/// A command follows the list.
#[test]
fn two_turn_list_waits_for_durability() {
    let dir = tempfile::tempdir_in(".").expect("a directory");
    let options = hikv::Options::new().engine(hikv::EngineKind::Pmekv).durability(hikv::Durability::Power);
    let Ok(store) = options.background(false).open(dir.path()) else { return };
    let count = limits::WALK_ITEM_COUNT_MAX as u32 + 100;
    let put = |number: u32| store.put(number.to_be_bytes(), "").expect("it stores");
    let ((), ticket) = store.deferred(|_| (1..count).for_each(put));
    store.wait(ticket).expect("the disk is well");
    let ((), ticket) = store.deferred(|_| put(0));
    assert!(!store.is_durable(ticket).expect("the disk is well"));
    let (shared, controller) = offered(store.clone());
    let (_place, socket, mut host) = ends();
    let mut connection = queue_of(&shared, (controller.number, 1), socket, &mut host);
    connection.conclude(&shared);
    host.read_exact(&mut [0; 128 + 24]).expect("it is connected");
    let mut bytes = Vec::new();
    let list = Kv::List { from: Key::default(), buffer_bytes: 1 << 16 }.command(2, 1);
    WRITER.command(&mut bytes, &list.with_sgl(Sgl::Transport { len_bytes: 1 << 16 }), &[]);
    WRITER.command(
        &mut bytes,
        &Kv::Exist { key: Key::new(&(count - 1).to_be_bytes()).expect("it is short") }.command(3, 1),
        &[],
    );
    host.write_all(&bytes).expect("it takes them");
    turns_until(&mut connection, &shared, |connection| head(connection) == Some(1));
    assert!(connection.session.is_walking(), "it takes more turns than one");
    assert_eq!(connection.conclude(&shared), Turn::Again);
    turns_until(&mut connection, &shared, |connection| head(connection) == Some(2));
    host.set_timeout(Some(Duration::ZERO));
    for is_durable in [false, true] {
        connection.conclude(&shared);
        let mut response = vec![0; 1 << 17];
        let len = host.read(&mut response).unwrap_or(0);
        assert_eq!(len, if is_durable { 24 + 4 + 8 * count as usize + 24 + 24 } else { 0 });
        store.wait(ticket).expect("the disk is well");
    }
}
