//! Commands of the admin queue.

use std::net::SocketAddr;

use nvme::{Admin, Command, ControllerKind, Feature, Status};

use crate::apply::status_of;
use crate::controller::{Controller, keep_alive_of};
use crate::events::Events;
use crate::limits;
use crate::pages::{self, ALL_NAMESPACES, NAMESPACE};
use crate::reply::Reply;
use crate::shared::Shared;

/// The `select` value that queries whether a feature can be changed.
const SELECT_CAPABILITIES: u8 = 3;
const OF_NAMESPACE: u64 = 2;
const CHANGEABLE: u64 = 4;

/// Executes a command of the admin queue.
pub(crate) fn carry_out(
    shared: &Shared,
    controller: &Controller,
    local: SocketAddr,
    command: &Command,
    reply: &mut Reply<'_>,
) {
    let id = command.id();
    let outcome = match Admin::of(command) {
        Ok(Admin::Identify { page, command_set }) => {
            match pages::identify(shared, controller, (page, command_set), command.namespace()) {
                Ok(page) => return reply.page(command, &page),
                Err(status) => Err(status),
            }
        }
        Ok(Admin::GetLogPage(asked)) => match pages::log(shared, controller, &asked, local) {
            Ok(page) => {
                if asked.page == 0x02 && !asked.retains_event {
                    controller.state().events.is_read();
                }
                return reply.page(command, &page);
            }
            Err(status) => Err(status),
        },
        Ok(Admin::SetFeature { save: true, .. }) => Err(Status::NOT_SAVEABLE),
        Ok(Admin::SetFeature { number: Feature::KEY_VALUE, value, .. }) if controller.kind == ControllerKind::Io => {
            set_must_exist(shared, command.namespace(), value)
        }
        // The durability of completed writes was chosen when the device was started.
        Ok(Admin::SetFeature { number: Feature::WRITE_CACHE, .. }) if has_write_cache(shared, controller) => {
            Err(Status::NOT_CHANGEABLE)
        }
        Ok(Admin::SetFeature { number, value, .. }) => set_feature(controller, number, value),
        Ok(Admin::GetFeature { number, select }) => feature(shared, controller, (number, select), command.namespace()),
        // A command is aborted only by closing its queue: bit 0 says that it was not aborted.
        Ok(Admin::Abort { .. }) => Ok(1),
        // Its completion comes with the event.
        Ok(Admin::AwaitEvent) => match controller.state().events.wait(id) {
            Ok(()) => return,
            Err(status) => Err(status),
        },
        // The timer was already restarted when the command arrived.
        Ok(Admin::KeepAlive) => Ok(0),
        Ok(Admin::EndController { number }) => {
            shared.end_other(controller, number);
            Ok(0)
        }
        Err(status) => Err(status),
    };
    reply.conclude(id, outcome);
}

fn has_write_cache(shared: &Shared, controller: &Controller) -> bool {
    controller.kind == ControllerKind::Io && shared.has_volatile_cache()
}

/// The only feature of the namespace: no lock is held while the store is used.
fn set_must_exist(shared: &Shared, namespace: u32, value: u32) -> Result<u64, Status> {
    match namespace {
        NAMESPACE | ALL_NAMESPACES if value & !1 != 0 => Err(Status::INVALID_FIELD),
        NAMESPACE | ALL_NAMESPACES => {
            let set = shared.must_exist.set(&shared.store, value != 0);
            set.map(|()| 0).map_err(|error| status_of(&error))
        }
        _ => Err(Status::INVALID_NAMESPACE),
    }
}

fn set_feature(controller: &Controller, number: u8, value: u32) -> Result<u64, Status> {
    let is_io = controller.kind == ControllerKind::Io;
    let mut state = controller.state();
    match number {
        Feature::QUEUE_COUNT if is_io => {
            let (submission, completion) = (value as u16, (value >> 16) as u16);
            if submission == u16::MAX || completion == u16::MAX {
                return Err(Status::INVALID_FIELD);
            }
            if state.has_queues() {
                return Err(Status::COMMAND_SEQUENCE_ERROR);
            }
            state.queue_count = submission.min(completion).min(limits::QUEUE_COUNT_MAX - 1);
            Ok(pair(state.queue_count))
        }
        Feature::EVENTS => {
            state.events.wanted = value & Events::KNOWN;
            Ok(0)
        }
        Feature::KEEP_ALIVE => {
            state.keep_alive_ms = keep_alive_of(controller.kind, value);
            Ok(0)
        }
        _ => Err(Status::INVALID_FIELD),
    }
}

fn feature(
    shared: &Shared,
    controller: &Controller,
    (number, select): (u8, u8),
    namespace: u32,
) -> Result<u64, Status> {
    let is_io = controller.kind == ControllerKind::Io;
    if number == Feature::WRITE_CACHE && has_write_cache(shared, controller) {
        return match select {
            0..SELECT_CAPABILITIES => Ok(1),
            SELECT_CAPABILITIES => Ok(0),
            _ => Err(Status::INVALID_FIELD),
        };
    }
    let state = controller.state();
    let (now, at_first) = match number {
        Feature::QUEUE_COUNT if is_io => (pair(state.queue_count), pair(limits::QUEUE_COUNT_MAX - 1)),
        Feature::EVENTS => (state.events.wanted.into(), 0),
        Feature::KEEP_ALIVE => (state.keep_alive_ms.into(), 0),
        Feature::KEY_VALUE if is_io && namespace != NAMESPACE => return Err(Status::INVALID_NAMESPACE),
        Feature::KEY_VALUE if is_io => (shared.must_exist.get().into(), 0),
        _ => return Err(Status::INVALID_FIELD),
    };
    match select {
        0 => Ok(now),
        1 | 2 => Ok(at_first),
        SELECT_CAPABILITIES if number == Feature::KEY_VALUE => Ok(CHANGEABLE | OF_NAMESPACE),
        SELECT_CAPABILITIES => Ok(CHANGEABLE),
        _ => Err(Status::INVALID_FIELD),
    }
}

/// As many submission queues as completion queues.
fn pair(count: u16) -> u64 {
    u64::from(count) | u64::from(count) << 16
}
