//! A device in this process, and test hosts for it.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Mutex;
use std::thread::{self, JoinHandle};

use device::{Config, Device, StopHandle};
use device_client::{Client, Completed, Controller, Endpoint, Error, Host, Options, Queue, Wire};
use hikv::{EngineKind, Store};
use nvme::{Admin, Command, Completion, Digests, Key, Kv, Pdu, Status};
use tempfile::TempDir;

/// A device with its own empty store.
pub(crate) struct Bench {
    pub(crate) addr: SocketAddr,
    /// The socket for shared-memory hosts.
    pub(crate) shm: PathBuf,
    pub(crate) subsystem: String,
    pub(crate) store: Store,
    /// The hosts created here share memory with the device.
    pub(crate) by_shm: bool,
    stop: StopHandle,
    thread: Option<JoinHandle<()>>,
    pub(crate) dir: TempDir,
}

impl Bench {
    pub(crate) fn new() -> Bench {
        Bench::with(Config::default(), hikv::Options::new())
    }

    pub(crate) fn with(config: Config, options: hikv::Options) -> Bench {
        let dir = directory();
        let options = options.engine(EngineKind::Pmekv).durability(hikv::Durability::Process);
        let store = options.open(dir.path()).expect("a store");
        Bench::of(dir, store, config)
    }

    pub(crate) fn of(dir: TempDir, store: Store, config: Config) -> Bench {
        let shm = dir.path().join("device.socket");
        let shm_of = Some((shm.clone(), 0o600));
        let thread_count = if config.thread_count == 0 { 2 } else { config.thread_count };
        let config = Config { addr: "127.0.0.1:0".into(), shm: shm_of, thread_count, ..config };
        let stop = StopHandle::new();
        let device = Device::new(store.clone(), &config, stop.clone()).expect("a free port");
        let (addr, subsystem) = (device.local_addr(), device.subsystem().to_owned());
        let thread = thread::spawn(move || device.run().expect("it serves"));
        Bench { addr, shm, subsystem, store, stop, thread: Some(thread), dir, by_shm: false }
    }

    /// The same, for shared-memory hosts.
    pub(crate) fn by_shm(mut self, by_shm: bool) -> Bench {
        self.by_shm = by_shm;
        self
    }

    pub(crate) fn client(&self) -> Client {
        self.client_with(Options::default())
    }

    pub(crate) fn client_with(&self, options: Options) -> Client {
        let client =
            if self.by_shm { Client::connect_shm(&self.shm, options) } else { Client::connect(self.addr, options) };
        client.expect("it connects")
    }

    /// Returns the device's endpoint.
    pub(crate) fn endpoint(&self) -> Endpoint {
        if self.by_shm { (&*self.shm).into() } else { self.addr.into() }
    }

    pub(crate) fn controller(&self) -> Controller {
        self.controller_of(&Host::new(), 0)
    }

    pub(crate) fn controller_of(&self, host: &Host, keep_alive_ms: u32) -> Controller {
        Controller::connect(self.endpoint(), Digests::default(), host, &self.subsystem, keep_alive_ms)
            .expect("it connects")
    }

    /// Returns the outcome of connecting to a queue.
    pub(crate) fn connect(
        &self,
        host: &Host,
        subsystem: &str,
        queue: (u16, u16),
        entry_count: u16,
    ) -> Result<Queue, Error> {
        Queue::connect(self.endpoint(), Digests::default(), host, subsystem, queue, (entry_count, 0))
    }

    /// Checks that the device serves.
    pub(crate) fn is_alive(&self) {
        let mut client = self.client();
        client.store("alive", "yes").expect("it stores");
        assert_eq!(client.retrieve("alive").expect("it reads").as_deref(), Some(&b"yes"[..]));
        client.delete("alive").expect("it deletes");
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.stop.stop();
        let ended = self.thread.take().map(JoinHandle::join);
        if !thread::panicking() {
            ended.into_iter().for_each(|ended| ended.expect("no loop panics"));
        }
    }
}

/// Returns a directory where writes are durable immediately, if there is one.
pub(crate) fn directory() -> TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a directory")
}

pub(crate) fn key(bytes: impl AsRef<[u8]>) -> Key {
    Key::new(bytes.as_ref()).expect("it is short")
}

/// Runs a key command.
pub(crate) fn run(queue: &mut Queue, kv: Kv, value: &[u8], buffer_bytes: usize) -> Completed {
    run_raw(queue, kv.command(0, 1), value, buffer_bytes)
}

/// Runs a raw command.
pub(crate) fn run_raw(queue: &mut Queue, command: Command, value: &[u8], buffer_bytes: usize) -> Completed {
    let id = queue.submit(command, value, buffer_bytes);
    let completed = queue.complete_one(id).expect("it is completed");
    note(completed.status);
    completed
}

/// Statuses that a device has returned in this process.
static GIVEN: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());

/// Records a returned status.
pub(crate) fn note(status: Status) {
    GIVEN.lock().expect("nobody panics there").insert(status.code());
}

/// Returns whether a device has returned this status in this process.
pub(crate) fn is_given(status: Status) -> bool {
    GIVEN.lock().expect("nobody panics there").contains(&status.code())
}

/// Sends a command followed by the data, whatever its descriptor says, on a connection or a queue, and returns the
/// completion.
pub(crate) fn send(wire: &mut Wire, command: &Command, data: &[u8]) -> Completion {
    wire.write(|writer, out| writer.command(out, command, data));
    completion(wire)
}

/// Returns the next completion.
pub(crate) fn completion(wire: &mut Wire) -> Completion {
    let completion = wire.receive(|pdu| match pdu {
        Pdu::Completion(completion) => Ok(completion),
        other => panic!("{other:?}"),
    });
    let completion = completion.expect("it is completed");
    note(completion.status);
    completion
}

/// Returns the status of a refused admin command.
pub(crate) fn refused(controller: &mut Controller, admin: Admin, namespace: u32) -> Status {
    status_of(controller.admin(admin, namespace, 4096))
}

/// Returns the status of a refused operation.
pub(crate) fn status_of<T>(outcome: Result<T, Error>) -> Status {
    match outcome {
        Err(Error::Refused(status)) => {
            note(status);
            status
        }
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("it was done"),
    }
}
