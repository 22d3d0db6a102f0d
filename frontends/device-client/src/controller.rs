//! A controller: the admin queue, and queries about the controller.

use std::net::ToSocketAddrs;

use nvme::{
    Admin, Configuration, ConnectData, DISCOVERY_NQN, Digests, DiscoveryLog, Fabrics, Feature, IdentifyController,
    KV_COMMAND_SET, KvNamespace, LogPage, Property, StatusRegister,
};

use crate::queue::{Completed, Host, Queue};
use crate::{Endpoint, Error};

/// Minimum number of entries of an admin queue.
const ADMIN_ENTRIES: u16 = 32;
/// Maximum number of checks whether a controller is ready.
const READY_LOOK_COUNT_MAX: usize = 1000;
/// The header of a discovery log.
const DISCOVERY_HEAD_BYTES: u64 = 1024;
/// A discovery log with more entries is truncated.
const DISCOVERY_ENTRY_COUNT_MAX: u64 = 64;

/// An enabled controller, with its admin queue.
#[derive(Debug)]
pub struct Controller {
    /// The admin queue.
    pub admin: Queue,
    endpoint: Endpoint,
    host: Host,
    subsystem: String,
    digests: Digests,
}

impl Controller {
    /// Creates and enables a controller of `subsystem`. It ends without commands for `keep_alive`, unless that is 0.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn connect(
        endpoint: impl Into<Endpoint>,
        digests: Digests,
        host: &Host,
        subsystem: &str,
        keep_alive_ms: u32,
    ) -> Result<Controller, Error> {
        let (queue, endpoint) = ((ConnectData::ANY_CONTROLLER, 0), endpoint.into());
        let admin = Queue::connect(endpoint.clone(), digests, host, subsystem, queue, (ADMIN_ENTRIES, keep_alive_ms))?;
        let mut controller =
            Controller { admin, endpoint, host: host.clone(), subsystem: subsystem.to_owned(), digests };
        controller.set(Property::Configuration, Configuration::ENABLED.0.into())?;
        for _ in 0..READY_LOOK_COUNT_MAX {
            if StatusRegister::of_bits(controller.property(Property::Status)? as u32).is_ready {
                return Ok(controller);
            }
        }
        Err(Error::Unexpected("the controller does not become ready"))
    }

    /// Connects an I/O queue, with a number of at least 1.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn queue(&self, number: u16, entry_count: u16) -> Result<Queue, Error> {
        let number = (self.admin.controller, number);
        Queue::connect(self.endpoint.clone(), self.digests, &self.host, &self.subsystem, number, (entry_count, 0))
    }

    /// Reads a property.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn property(&mut self, property: Property) -> Result<u64, Error> {
        let get = Fabrics::PropertyGet { offset: property.offset(), len_bytes: property.len_bytes() };
        let id = self.admin.submit(get.command(0), &[], 0);
        Ok(self.admin.complete_one(id)?.done()?.result)
    }

    /// Writes a property.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn set(&mut self, property: Property, value: u64) -> Result<(), Error> {
        let set = Fabrics::PropertySet { offset: property.offset(), len_bytes: property.len_bytes(), value };
        let id = self.admin.submit(set.command(0), &[], 0);
        self.admin.complete_one(id)?.done()?;
        Ok(())
    }

    /// Runs a command of the admin queue with a buffer for data.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn admin(&mut self, command: Admin, namespace: u32, buffer_bytes: usize) -> Result<Completed, Error> {
        let id = self.admin.submit(command.command(0, namespace), &[], buffer_bytes);
        Ok(self.admin.complete_one(id)?.done()?)
    }

    /// Returns the controller's Identify page.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn identify(&mut self) -> Result<IdentifyController, Error> {
        let page = self.admin(Admin::Identify { page: 0x01, command_set: 0 }, 0, nvme::IDENTIFY_BYTES)?;
        Ok(IdentifyController::decode(&page.data))
    }

    /// Returns a namespace's Identify page.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn identify_namespace(&mut self, namespace: u32) -> Result<KvNamespace, Error> {
        let identify = Admin::Identify { page: 0x05, command_set: KV_COMMAND_SET };
        Ok(KvNamespace::decode(&self.admin(identify, namespace, nvme::IDENTIFY_BYTES)?.data))
    }

    /// Returns a part of a log page.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn log(&mut self, page: u8, offset: u64, len_bytes: u64) -> Result<Vec<u8>, Error> {
        let asked = LogPage { page, command_set: KV_COMMAND_SET, offset, len_bytes, retains_event: false };
        Ok(self.admin(Admin::GetLogPage(asked), u32::MAX, len_bytes as usize)?.data)
    }

    /// Sends a keep-alive command.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn keep_alive(&mut self) -> Result<(), Error> {
        self.admin(Admin::KeepAlive, 0, 0).map(drop)
    }

    /// Requests `count` I/O queues, and returns the permitted number.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn set_queue_count(&mut self, count: u16) -> Result<u16, Error> {
        let value = u32::from(count.saturating_sub(1)) * 0x1_0001;
        let set = Admin::SetFeature { number: Feature::QUEUE_COUNT, value, save: false };
        Ok((self.admin(set, 0, 0)?.result as u16).saturating_add(1))
    }
}

/// Returns the discovery log of the device at `addr`.
///
/// # Errors
/// See [`Error`].
pub fn discover(addr: impl ToSocketAddrs) -> Result<DiscoveryLog, Error> {
    discover_at(&Endpoint::of_name(addr)?)
}

/// Returns the discovery log of the device at `endpoint`.
///
/// # Errors
/// See [`Error`].
pub fn discover_at(endpoint: &Endpoint) -> Result<DiscoveryLog, Error> {
    let mut controller = Controller::connect(endpoint.clone(), Digests::default(), &Host::new(), DISCOVERY_NQN, 0)?;
    let head = controller.log(0x70, 0, DISCOVERY_HEAD_BYTES)?;
    let count =
        u64::from_le_bytes(*head[8..].first_chunk().ok_or(Error::Unexpected("the discovery log has no header"))?);
    let len_bytes = DISCOVERY_HEAD_BYTES * (1 + count.min(DISCOVERY_ENTRY_COUNT_MAX));
    Ok(DiscoveryLog::decode(&controller.log(0x70, 0, len_bytes)?))
}
