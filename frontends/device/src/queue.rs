//! A queue of a controller, which is one connection.

use std::mem;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use nvme::{Command, Configuration, Data, Fabrics, Fatal, FatalCause, Kv, Property, Sgl, Status, StoreIf};

use crate::admin;
use crate::apply::{self, status_of};
use crate::auth::Auth;
use crate::controller::Controller;
use crate::group::Group;
use crate::limits;
use crate::pages::{ALL_NAMESPACES, NAMESPACE};
use crate::reply::{Reply, buffer_of};
use crate::shared::Shared;
use crate::transfers::{Transfer, Transfers};
use crate::walk::{Piece, Walk};

pub(crate) struct Queue {
    pub(crate) controller: Arc<Controller>,
    /// 0 is the admin queue.
    number: u16,
    entry_count: u16,
    /// The submission queue head.
    pub(crate) head: u16,
    /// The enabling of the controller that it belongs to.
    enabling: u32,
    /// It has its queue number. A queue that must authenticate gets it after that.
    is_numbered: bool,
    transfers: Transfers,
    /// Set if the host has to authenticate.
    auth: Option<Auth>,
    /// A list that continues in the next turn.
    walk: Option<Walk>,
    /// That list waits for the order of keys.
    awaits_order: bool,
    /// Read commands of a turn.
    read_count: u64,
    write_count: u64,
    local: SocketAddr,
}

impl Queue {
    pub(crate) fn new(
        controller: Arc<Controller>,
        (number, enabling): (u16, u32),
        entry_count: u16,
        local: SocketAddr,
        auth: Option<Auth>,
    ) -> Queue {
        Queue {
            controller,
            number,
            entry_count,
            head: 0,
            enabling,
            is_numbered: number == 0 || auth.is_none(),
            transfers: Transfers::default(),
            auth,
            walk: None,
            awaits_order: false,
            read_count: 0,
            write_count: 0,
            local,
        }
    }

    pub(crate) fn is_admin(&self) -> bool {
        self.number == 0
    }

    /// Returns whether its controller has ended, or was reset since.
    pub(crate) fn is_over(&self) -> bool {
        self.controller.is_over() || !self.is_admin() && self.controller.enabling() != self.enabling
    }

    /// Cleans up after the connection was closed.
    pub(crate) fn end(&self, shared: &Shared) {
        if self.is_admin() {
            shared.end_controller(&self.controller);
        } else if self.is_numbered {
            self.controller.release_queue(self.number, self.enabling);
        }
    }

    /// Ends a turn in which the controller's host has sent something. A queue without a number does not count: it may
    /// belong to a host that has not authenticated yet.
    pub(crate) fn conclude_turn(&mut self, shared: &Shared, now: Instant) {
        if self.is_numbered {
            self.controller.note_activity(now);
        }
        shared.count(mem::take(&mut self.read_count), mem::take(&mut self.write_count));
    }

    /// Executes a command, or adds it to a group.
    pub(crate) fn command<'i>(
        &mut self,
        shared: &Shared,
        command: &Command,
        data: &'i [u8],
        group: &mut Group<'i>,
        reply: &mut Reply<'_>,
    ) -> Result<(), Fatal> {
        self.advance(reply);
        let outcome = match command.opcode() {
            Fabrics::OPCODE => self.fabrics(shared, command, data, reply),
            _ if !self.is_authenticated() => Err(Status::AUTHENTICATION_REQUIRED),
            _ if command.is_fused() => Err(Status::INVALID_FIELD),
            _ if !self.controller.is_ready() => Err(Status::COMMAND_SEQUENCE_ERROR),
            _ if self.is_admin() => {
                admin::carry_out(shared, &self.controller, self.local, command, reply);
                return Ok(());
            }
            _ => self.io(shared, command, data, group, reply),
        };
        match outcome {
            Ok(Some(result)) => reply.complete(command.id(), Status::SUCCESS, result),
            Ok(None) => {}
            Err(status) => reply.conclude(command.id(), Err(status)),
        }
        self.request_values(reply)
    }

    fn request_values(&mut self, reply: &mut Reply<'_>) -> Result<(), Fatal> {
        if self.transfers.len() > usize::from(self.entry_count) {
            return Err(Fatal::new(FatalCause::Sequence, 0, &[]));
        }
        while let Some(ready) = self.transfers.next_ready() {
            reply.writer.ready(&mut reply.out, &ready);
        }
        Ok(())
    }

    /// Refuses a command whose data was corrupted in transfer; the host may send it again.
    pub(crate) fn corrupt(&mut self, command: &Command, reply: &mut Reply<'_>) {
        self.advance(reply);
        reply.complete(command.id(), Status::TRANSIENT_TRANSPORT_ERROR, 0);
    }

    /// Processes a part of a requested value, which has a valid digest or is corrupted.
    pub(crate) fn data<'i>(
        &mut self,
        shared: &Shared,
        (data, is_corrupt): (&Data<'_>, bool),
        group: &mut Group<'i>,
        reply: &mut Reply<'_>,
    ) -> Result<(), Fatal> {
        if let Some(transfer) = self.transfers.take(data, is_corrupt)? {
            group.carry_out(&shared.store, reply);
            self.store(shared, &transfer, reply);
        }
        self.request_values(reply)
    }

    /// Stores a value that has arrived after its command.
    fn store(&self, shared: &Shared, transfer: &Transfer, reply: &mut Reply<'_>) {
        let Transfer { id, key, when, ref value, is_corrupt, .. } = *transfer;
        match () {
            () if is_corrupt => reply.complete(id, Status::TRANSIENT_TRANSPORT_ERROR, 0),
            () if !self.controller.is_ready() => reply.conclude(id, Err(Status::COMMAND_SEQUENCE_ERROR)),
            () => reply.conclude(id, apply::store(&shared.store, &key, value, when).map(|()| 0)),
        }
    }

    /// Advances the queue head by one command.
    fn advance(&mut self, reply: &mut Reply<'_>) {
        self.head = if self.head + 1 < self.entry_count { self.head + 1 } else { 0 };
        reply.queue_head = self.head;
    }

    /// Returns whether a list is unfinished; no further command is executed before it is finished.
    pub(crate) fn is_walking(&self) -> bool {
        self.walk.is_some()
    }

    /// Returns whether that list waits for the order of keys, and needs no turn before.
    pub(crate) fn awaits_order(&self) -> bool {
        self.awaits_order
    }

    /// Continues an unfinished list, if there is one.
    pub(crate) fn continue_walk(&mut self, shared: &Shared, reply: &mut Reply<'_>) {
        let Some(mut walk) = self.walk.take() else { return };
        let outcome = shared.ordered().and_then(|ordered| walk.step(ordered));
        self.awaits_order = outcome == Ok(Piece::Later);
        match outcome {
            Ok(Piece::More | Piece::Later) => self.walk = Some(walk),
            Ok(Piece::Done(list, result)) => {
                reply.data(walk.id, &list);
                reply.complete(walk.id, Status::SUCCESS, result);
            }
            Err(status) => reply.conclude(walk.id, Err(status)),
        }
    }

    /// Returns whether the host is authenticated, or need not be.
    pub(crate) fn is_authenticated(&self) -> bool {
        self.auth.as_ref().is_none_or(Auth::is_done)
    }

    /// Executes a fabrics command; `None` if its completion was written.
    fn fabrics(
        &mut self,
        shared: &Shared,
        command: &Command,
        data: &[u8],
        reply: &mut Reply<'_>,
    ) -> Result<Option<u64>, Status> {
        let is_authenticated = self.is_authenticated();
        match (Fabrics::of(command)?, &mut self.auth, &shared.secrets) {
            (Fabrics::AuthSend { len_bytes }, Some(auth), Some(secrets)) => {
                let message = value_of(command, data, len_bytes as usize)?.ok_or(Status::SGL_TYPE_INVALID)?;
                auth.take(secrets, &shared.subsystem, message)?;
                self.take_number().map(|()| Some(0))
            }
            (Fabrics::AuthReceive { len_bytes }, Some(auth), _) => {
                let mut message = auth.next_message()?;
                self.take_number()?;
                message.truncate(len_bytes as usize);
                reply.page(command, &message);
                Ok(None)
            }
            (other, ..) if is_authenticated => self.of_controller(shared, other).map(Some),
            _ => Err(Status::AUTHENTICATION_REQUIRED),
        }
    }

    /// Takes the queue's number after authentication. If another connection has taken it, this one becomes no queue.
    fn take_number(&mut self) -> Result<(), Status> {
        if self.is_numbered || !self.is_authenticated() {
            return Ok(());
        }
        let taken = self.controller.reserve_queue(self.number);
        match taken {
            Ok(enabling) => (self.enabling, self.is_numbered) = (enabling, true),
            Err(_) => self.auth.iter_mut().for_each(Auth::fail),
        }
        taken.map(drop)
    }

    fn of_controller(&self, shared: &Shared, command: Fabrics) -> Result<u64, Status> {
        match command {
            Fabrics::PropertyGet { offset, len_bytes } if self.is_admin() => {
                let property = Property::at(offset, len_bytes).ok_or(Status::INVALID_FIELD)?;
                Ok(self.controller.property(property))
            }
            Fabrics::PropertySet { offset, len_bytes, value } if self.is_admin() => {
                if Property::at(offset, len_bytes) != Some(Property::Configuration) {
                    return Err(Status::INVALID_FIELD);
                }
                if self.controller.configure(Configuration(value as u32))? {
                    shared.wake_for_endings();
                }
                Ok(0)
            }
            // A queue is connected once.
            Fabrics::Connect(_) => Err(Status::COMMAND_SEQUENCE_ERROR),
            _ => Err(Status::INVALID_OPCODE),
        }
    }

    /// Executes a key command or adds it to a group; `None` if its completion comes later, or was written.
    fn io<'i>(
        &mut self,
        shared: &Shared,
        command: &Command,
        data: &'i [u8],
        group: &mut Group<'i>,
        reply: &mut Reply<'_>,
    ) -> Result<Option<u64>, Status> {
        let (kv, id, store) = (Kv::of(command)?, command.id(), &shared.store);
        let is_for_all = kv == Kv::Flush && command.namespace() == ALL_NAMESPACES;
        if command.namespace() != NAMESPACE && !is_for_all {
            return Err(Status::INVALID_NAMESPACE);
        }
        match kv {
            Kv::Store { .. } | Kv::Delete { .. } | Kv::Flush => self.write_count += 1,
            _ => self.read_count += 1,
        }
        match kv {
            Kv::Store { key, value_bytes, when } => {
                if value_bytes > limits::VALUE_BYTES_MAX {
                    return Err(Status::INVALID_VALUE_SIZE);
                }
                let Some(value) = value_of(command, data, value_bytes as usize)? else {
                    return self.transfers.add(Transfer::new(id, key, when, value_bytes as usize)).map(|()| None);
                };
                if when == StoreIf::Always {
                    group.store(store, reply, id, key, value);
                    return Ok(None);
                }
                group.carry_out(store, reply);
                apply::store(store, &key, value, when).map(|()| Some(0))
            }
            Kv::Retrieve { key, buffer_bytes } => {
                let buffer_bytes = checked_buffer(command, buffer_bytes, 0)?;
                group.retrieve(store, reply, id, key, buffer_bytes);
                Ok(None)
            }
            Kv::List { from, buffer_bytes } => {
                group.carry_out(store, reply);
                self.walk = Some(Walk::of_keys(id, &from, checked_buffer(command, buffer_bytes, 4)?));
                self.continue_walk(shared, reply);
                Ok(None)
            }
            Kv::Range { from, buffer_bytes } => {
                group.carry_out(store, reply);
                self.walk = Some(Walk::of_items(id, &from, checked_buffer(command, buffer_bytes, 4)?));
                self.continue_walk(shared, reply);
                Ok(None)
            }
            Kv::Delete { key } => {
                group.delete(store, reply, id, key, shared.must_exist.get());
                Ok(None)
            }
            Kv::Exist { key } => {
                group.carry_out(store, reply);
                apply::exist(store, &key).map(|()| Some(0))
            }
            Kv::Flush => {
                group.carry_out(store, reply);
                store.sync().map_err(|error| status_of(&error)).map(|()| Some(0))
            }
        }
    }
}

/// Returns the value in the capsule, or `None` if it must be requested.
fn value_of<'i>(command: &Command, data: &'i [u8], len_bytes: usize) -> Result<Option<&'i [u8]>, Status> {
    match command.sgl() {
        _ if len_bytes == 0 => Ok(Some(&[])),
        Sgl::InCapsule { offset: 1.., .. } => Err(Status::SGL_OFFSET_INVALID),
        Sgl::InCapsule { len_bytes: given, .. } if (given as usize) < len_bytes => Err(Status::SGL_LENGTH_INVALID),
        Sgl::InCapsule { .. } => data.get(..len_bytes).map(Some).ok_or(Status::SGL_LENGTH_INVALID),
        Sgl::Transport { len_bytes: given } if (given as usize) < len_bytes => Err(Status::SGL_LENGTH_INVALID),
        Sgl::Transport { .. } => Ok(None),
        Sgl::Other => Err(Status::SGL_TYPE_INVALID),
    }
}

/// Returns the size of the host's buffer, which must be at least `min`.
fn checked_buffer(command: &Command, buffer_bytes: u32, min: usize) -> Result<usize, Status> {
    if buffer_bytes > limits::VALUE_BYTES_MAX {
        return Err(Status::INVALID_FIELD);
    }
    let buffer_bytes = buffer_of(command, buffer_bytes as usize)?;
    if buffer_bytes < min { Err(Status::SGL_LENGTH_INVALID) } else { Ok(buffer_bytes) }
}
