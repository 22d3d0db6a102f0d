//! PMEKV-NVM: the engine in an NVMe-KV device. Threads are hosts that share memory with the device; each has a
//! controller and a queue.

use std::path::PathBuf;
use std::thread::{self, JoinHandle};

use device::{Config, Device, StopHandle};
use device_client::{Controller, Host, Queue};
use hikv::{EngineKind, Store};
use nvme::{Digests, Key, Kv, Status};
use tempfile::TempDir;

use super::system::{self, Place};
use crate::Error;
use crate::memory::Counted;
use crate::work::{Session, System};

/// The namespace of hikv's devices.
const NAMESPACE: u32 = 1;
/// The buffer for a read value: no record of the figures is longer.
const BUFFER_BYTES: usize = 16 << 10;
/// Queue entries: concurrent commands plus one that is never used.
const ENTRY_COUNT: u16 = 4;

/// A device in threads of this process, with a store of the engine.
pub(super) struct Nvm {
    socket: PathBuf,
    subsystem: String,
    stop: StopHandle,
    thread: Option<JoinHandle<()>>,
    /// The device's store.
    store: Store,
    _home: TempDir,
}

impl Nvm {
    pub(super) fn start(place: Place<'_>) -> Result<Nvm, Error> {
        let home = tempfile::tempdir_in(place.dir)?;
        let (socket, stop) = (home.path().join("socket"), StopHandle::new());
        let config = Config { addr: "127.0.0.1:0".into(), shm: Some((socket.clone(), 0o600)), ..Config::default() };
        let store = place.store(&home, EngineKind::Pmekv)?;
        let device = Device::new(store.clone(), &config, stop.clone()).map_err(|error| error.to_string())?;
        let subsystem = device.subsystem().to_owned();
        let thread = thread::spawn(move || device.run().expect("the operating system serves a device"));
        Ok(Nvm { socket, subsystem, stop, thread: Some(thread), store, _home: home })
    }
}

impl Drop for Nvm {
    fn drop(&mut self) {
        self.stop.stop();
        self.thread.take().into_iter().for_each(|thread| _ = thread.join());
    }
}

impl System for Nvm {
    fn session(&self) -> Result<Box<dyn Session + '_>, Error> {
        let endpoint = self.socket.as_path();
        let controller = Controller::connect(endpoint, Digests::default(), &Host::new(), &self.subsystem, 0)?;
        Ok(Box::new(Attached { queue: controller.queue(1, ENTRY_COUNT)?, _controller: controller }))
    }

    fn counted(&self) -> Option<Counted> {
        system::counted(&self.store)
    }
}

/// A host.
struct Attached {
    queue: Queue,
    /// Kept because the queue ends with it.
    _controller: Controller,
}

impl Session for Attached {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        let store =
            Kv::Store { key: short(key)?, value_bytes: value.len() as u32, when: device_client::StoreIf::Always };
        let id = self.queue.submit(store.command(0, NAMESPACE), value, 0);
        let done = self.queue.complete_one(id)?.done();
        Ok(done.map(drop).map_err(device_client::Error::Refused)?)
    }

    fn get(&mut self, key: &[u8], found: &mut dyn FnMut(&[u8])) -> Result<bool, Error> {
        let retrieve = Kv::Retrieve { key: short(key)?, buffer_bytes: BUFFER_BYTES as u32 };
        let id = self.queue.submit(retrieve.command(0, NAMESPACE), &[], BUFFER_BYTES);
        let completed = self.queue.complete_one(id)?;
        if completed.status.is(Status::KEY_NOT_FOUND) {
            return Ok(false);
        }
        found(&completed.done().map_err(device_client::Error::Refused)?.data);
        Ok(true)
    }
}

fn short(key: &[u8]) -> Result<Key, Error> {
    Ok(Key::new(key).ok_or("the key is longer than the command set allows")?)
}
