//! The pages that a controller returns.

use std::net::SocketAddr;

use nvme::{
    ControllerKind, DiscoveryEntry, DiscoveryLog, Feature, IdentifyController, KV_COMMAND_SET, KvNamespace, LogPage,
    Status,
};

use crate::controller::Controller;
use crate::events::Event;
use crate::limits;
use crate::shared::Shared;

/// The only namespace.
pub(crate) const NAMESPACE: u32 = 1;
/// The namespace number that means all namespaces.
pub(crate) const ALL_NAMESPACES: u32 = u32::MAX;

/// Returns a page of Identify.
pub(crate) fn identify(
    shared: &Shared,
    controller: &Controller,
    (page, command_set): (u8, u8),
    namespace: u32,
) -> Result<Vec<u8>, Status> {
    if page == 0x01 {
        return Ok(identify_controller(shared, controller).encode());
    }
    if controller.kind == ControllerKind::Discovery {
        return Err(Status::INVALID_FIELD);
    }
    let of_namespace = |page: Vec<u8>| if namespace == NAMESPACE { Ok(page) } else { Err(Status::INVALID_NAMESPACE) };
    let of_command_set = || if command_set == KV_COMMAND_SET { Ok(()) } else { Err(Status::INVALID_FIELD) };
    match page {
        // A block namespace: there is none, which zeros indicate.
        0x00 => of_namespace(vec![0; nvme::IDENTIFY_BYTES]),
        0x02 if namespace >= ALL_NAMESPACES - 1 => Err(Status::INVALID_NAMESPACE),
        0x02 => Ok(nvme::active_namespaces(namespace, NAMESPACE)),
        0x03 => of_namespace(nvme::namespace_descriptors(shared.store.uuid())),
        0x05 => of_command_set().and_then(|()| of_namespace(identify_namespace(shared).encode())),
        0x06 => of_command_set().map(|()| vec![0; nvme::IDENTIFY_BYTES]),
        0x07 => of_command_set().map(|()| nvme::active_namespaces(namespace, NAMESPACE)),
        0x08 => of_namespace(nvme::independent_namespace(is_write_protected(shared))),
        0x1c => Ok(nvme::command_sets()),
        _ => Err(Status::INVALID_FIELD),
    }
}

fn identify_controller(shared: &Shared, controller: &Controller) -> IdentifyController {
    let is_discovery = controller.kind == ControllerKind::Discovery;
    let serial: String = shared.store.uuid()[..10].iter().map(|byte| format!("{byte:02x}")).collect();
    IdentifyController {
        kind: controller.kind,
        controller: controller.number,
        serial,
        model: format!("hikv {} device", shared.store.engine_kind()),
        firmware: env!("CARGO_PKG_VERSION").to_owned(),
        transfer_max: limits::TRANSFER_MAX,
        command_count_max: limits::QUEUE_ENTRIES_MAX,
        event_count_max: limits::EVENT_COUNT_MAX as u8,
        capsule_bytes_max: limits::CAPSULE_BYTES_MAX as u32,
        capacity_bytes: if is_discovery { 0 } else { shared.capacity_bytes },
        has_volatile_cache: shared.has_volatile_cache(),
        subsystem: if is_discovery { nvme::DISCOVERY_NQN.to_owned() } else { shared.subsystem.clone() },
    }
}

fn identify_namespace(shared: &Shared) -> KvNamespace {
    KvNamespace {
        size_bytes: shared.capacity_bytes,
        // Items and index of a formerly larger store may exceed the capacity.
        used_bytes: shared.used_bytes().min(shared.capacity_bytes),
        value_bytes_max: limits::VALUE_BYTES_MAX,
        uuid: shared.store.uuid(),
        is_write_protected: is_write_protected(shared),
    }
}

fn is_write_protected(shared: &Shared) -> bool {
    shared.holds(Event::MediumFailed)
}

/// The log pages of I/O controllers, and of discovery controllers.
const LOG_PAGES: [u8; 7] = [0x00, 0x01, 0x02, 0x03, 0x05, 0x12, 0x13];
const DISCOVERY_LOG_PAGES: [u8; 3] = [0x00, 0x01, 0x70];

fn features_of_controller(shared: &Shared) -> &'static [u8] {
    const ALL: &[u8] = &[Feature::QUEUE_COUNT, Feature::EVENTS, Feature::KEEP_ALIVE, Feature::WRITE_CACHE];
    if shared.has_volatile_cache() { ALL } else { &ALL[..ALL.len() - 1] }
}

/// Returns the requested part of a log page.
pub(crate) fn log(
    shared: &Shared,
    controller: &Controller,
    asked: &LogPage,
    local: SocketAddr,
) -> Result<Vec<u8>, Status> {
    const ERROR_ENTRY_BYTES: usize = 64;
    let is_discovery = controller.kind == ControllerKind::Discovery;
    let pages = if is_discovery { &DISCOVERY_LOG_PAGES[..] } else { &LOG_PAGES };
    if !pages.contains(&asked.page) {
        return Err(Status::INVALID_LOG_PAGE);
    }
    let page = match asked.page {
        0x00 => nvme::supported_logs(pages),
        0x02 => shared.health().encode(),
        0x03 => nvme::firmware(env!("CARGO_PKG_VERSION")),
        0x05 => nvme::effects(asked.command_set),
        0x12 => nvme::supported_features(features_of_controller(shared), &[Feature::KEY_VALUE]),
        // There is no management interface, so none of its commands is supported.
        0x13 => vec![0; nvme::IDENTIFY_BYTES],
        0x70 => discovery(shared, local).encode(),
        // No error log is kept: each error is reported where it occurs.
        _ => vec![0; ERROR_ENTRY_BYTES],
    };
    if asked.len_bytes > u64::from(limits::VALUE_BYTES_MAX) {
        return Err(Status::INVALID_FIELD);
    }
    let rest = usize::try_from(asked.offset).ok().and_then(|offset| page.get(offset..)).ok_or(Status::INVALID_FIELD)?;
    let mut part = rest.to_vec();
    part.resize(asked.len_bytes as usize, 0);
    Ok(part)
}

/// Returns the discovery log: the subsystem is at the address by which the host found this controller. It never changes
/// while the device runs.
fn discovery(shared: &Shared, addr: SocketAddr) -> DiscoveryLog {
    let entry = DiscoveryEntry { is_discovery: false, port: 1, subsystem: shared.subsystem.clone(), addr };
    DiscoveryLog { generation: 1, entries: vec![entry] }
}
