//! The state of a connection: nothing, a transport, a queue.
//!
//! | phase | accepts | next phase |
//! |---|---|---|
//! | `Initial` | Initialize Connection Request | `Open` |
//! | `Open` | Connect; other commands get a status | `Queue`, or unchanged |
//! | `Queue` | commands, and requested data | |
//!
//! Anything else ends the connection.

use std::net::SocketAddr;
use std::time::Instant;

use nvme::{
    Command, Connect, ConnectData, ControllerKind, Digests, Fabrics, Fatal, FatalCause, Framing, InitialRequest,
    InitialResponse, Pdu, Side, Status, Writer,
};

use crate::auth::Auth;
use crate::group::Group;
use crate::limits;
use crate::output::Outlet;
use crate::queue::Queue;
use crate::reply::Reply;
use crate::shared::Shared;

pub(crate) struct Session {
    pub(crate) framing: Framing,
    writer: Writer,
    phase: Phase,
    local: SocketAddr,
    /// A shared-memory host needs no further authentication, and accepts a value as its command's completion.
    shares_memory: bool,
}

enum Phase {
    Initial,
    Open,
    Queue(Box<Queue>),
}

/// The state of the connection after a PDU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Flow {
    Go,
    /// It became a queue: further commands are executed in a turn of that queue.
    Turn,
    Close,
}

impl Session {
    pub(crate) fn new(local: SocketAddr, shares_memory: bool) -> Session {
        Session {
            framing: Framing {
                side: Side::Controller,
                digests: Digests::default(),
                capsule_bytes_max: limits::CAPSULE_BYTES_MAX,
                data_bytes_max: limits::DATA_BYTES_MAX as usize,
            },
            writer: Writer { reader: Side::Host, digests: Digests::default(), alignment: 0 },
            phase: Phase::Initial,
            local,
            shares_memory,
        }
    }

    pub(crate) fn queue(&self) -> Option<&Queue> {
        if let Phase::Queue(queue) = &self.phase { Some(queue.as_ref()) } else { None }
    }

    fn reply<'o>(&self, out: &'o mut Outlet<'_>) -> Reply<'o> {
        let queue_head = self.queue().map_or(0, |queue| queue.head);
        Reply { out: out.by_ref(), writer: self.writer, queue_head, values_complete: self.shares_memory }
    }

    /// Processes a PDU, and writes the response.
    pub(crate) fn take<'i>(
        &mut self,
        shared: &Shared,
        pdu: &Pdu<'i>,
        group: &mut Group<'i>,
        out: &mut Outlet<'_>,
    ) -> Result<Flow, Fatal> {
        let mut reply = self.reply(out);
        match (&mut self.phase, pdu) {
            (_, Pdu::Terminate { .. }) => return Ok(Flow::Close),
            (Phase::Initial, Pdu::InitialRequest(request)) => self.begin(request, out)?,
            (Phase::Open, Pdu::Command(command, data)) => match self.connect(shared, command, data) {
                Ok((queue, result)) => {
                    reply.complete(command.id(), Status::SUCCESS, result);
                    self.phase = Phase::Queue(Box::new(queue));
                    return Ok(Flow::Turn);
                }
                Err((status, result)) => reply.complete(command.id(), status.final_one(), result),
            },
            (Phase::Queue(queue), Pdu::Command(command, data)) => {
                queue.command(shared, command, data, group, &mut reply)?;
            }
            (Phase::Queue(queue), Pdu::Data(data)) => queue.data(shared, (data, false), group, &mut reply)?,
            (Phase::Queue(queue), Pdu::CorruptData(data)) => queue.data(shared, (data, true), group, &mut reply)?,
            (Phase::Queue(queue), Pdu::CorruptCommand(command)) => queue.corrupt(command, &mut reply),
            (Phase::Open, Pdu::CorruptCommand(command)) => {
                reply.complete(command.id(), Status::TRANSIENT_TRANSPORT_ERROR, 0);
            }
            _ => return Err(Fatal::new(FatalCause::Sequence, 0, &[])),
        }
        Ok(Flow::Go)
    }

    /// Executes the collected commands.
    pub(crate) fn carry_out(&self, shared: &Shared, group: &mut Group<'_>, out: &mut Outlet<'_>) {
        group.carry_out(&shared.store, &mut self.reply(out));
    }

    /// Ends a turn in which the host has sent something.
    pub(crate) fn conclude_turn(&mut self, shared: &Shared, now: Instant) {
        if let Phase::Queue(queue) = &mut self.phase {
            queue.conclude_turn(shared, now);
        }
    }

    /// Returns whether a list is unfinished.
    pub(crate) fn is_walking(&self) -> bool {
        self.queue().is_some_and(Queue::is_walking)
    }

    /// Returns whether a list waits for the order of keys.
    pub(crate) fn awaits_order(&self) -> bool {
        self.queue().is_some_and(Queue::awaits_order)
    }

    /// Continues an unfinished list.
    pub(crate) fn continue_walk(&mut self, shared: &Shared, out: &mut Outlet<'_>) {
        let mut reply = self.reply(out);
        if let Phase::Queue(queue) = &mut self.phase {
            queue.continue_walk(shared, &mut reply);
        }
    }

    /// Completes event commands for events that have occurred.
    pub(crate) fn complete_events(&self, shared: &Shared, out: &mut Outlet<'_>) {
        let Some(queue) = self.queue().filter(|queue| queue.is_admin()) else { return };
        if !queue.controller.state().events.is_awaited() {
            return;
        }
        let mut reply = self.reply(out);
        loop {
            // Evaluated without the lock, because it queries the store.
            let next = |event| shared.holds(event);
            let holding =
                [crate::events::Event::SpareLow, crate::events::Event::MediumFailed].map(|event| (event, next(event)));
            let reported = queue.controller.state().events.next(|event| holding.contains(&(event, true)));
            match reported {
                Some((id, result)) => reply.complete(id, Status::SUCCESS, result),
                None => return,
            }
        }
    }

    pub(crate) fn end_with(&self, fatal: &Fatal, out: &mut Outlet<'_>) {
        self.writer.terminate(out, fatal);
    }

    fn begin(&mut self, request: &InitialRequest, out: &mut Outlet<'_>) -> Result<(), Fatal> {
        if request.version != 0 {
            return Err(Fatal::new(FatalCause::Unsupported, 8, &[]));
        }
        if request.alignment > 31 {
            return Err(Fatal::new(FatalCause::InvalidHeader, 10, &[]));
        }
        let digests = request.digests;
        let response = InitialResponse { version: 0, alignment: 0, digests, data_bytes_max: limits::DATA_BYTES_MAX };
        self.writer.initial_response(out, &response);
        self.framing.digests = digests;
        self.writer = Writer { digests, alignment: request.alignment, ..self.writer };
        self.phase = Phase::Open;
        Ok(())
    }

    /// Creates the queue of a Connect command. On failure returns its status, and which parameter is invalid: bit 16
    /// indicates one in the data.
    fn connect(&self, shared: &Shared, command: &Command, data: &[u8]) -> Result<(Queue, u64), (Status, u64)> {
        const IN_DATA: u64 = 1 << 16;
        let plain = |status| (status, 0);
        let (in_command, in_data) = (|at| (Status::CONNECT_INVALID, at), |at| (Status::CONNECT_INVALID, at | IN_DATA));
        let connect = match (command.opcode(), Fabrics::of(command)) {
            (Fabrics::OPCODE, Ok(Fabrics::Connect(connect))) => connect,
            (Fabrics::OPCODE, Err(status)) => return Err(plain(status)),
            _ => return Err(plain(Status::COMMAND_SEQUENCE_ERROR)),
        };
        let Connect { queue, queue_entries, keep_alive_ms, .. } = connect;
        if queue_entries == 0 || queue_entries >= limits::QUEUE_ENTRIES_MAX {
            return Err(in_command(44));
        }
        let ConnectData { host_id, controller, subsystem, host } = ConnectData::decode(data).map_err(plain)?;
        if !shared.permits_host(&host) {
            return Err((Status::CONNECT_INVALID_HOST, 512 | IN_DATA));
        }
        let kind = match subsystem {
            name if name == shared.subsystem => ControllerKind::Io,
            name if name == nvme::DISCOVERY_NQN => ControllerKind::Discovery,
            _ => return Err(in_data(256)),
        };
        let is_asked = shared.secrets.is_some() && kind == ControllerKind::Io && !self.shares_memory;
        let (controller, enabling) = if queue == 0 {
            if controller != ConnectData::ANY_CONTROLLER {
                return Err(in_data(16));
            }
            (shared.add_controller(kind, (host, host_id), keep_alive_ms).map_err(plain)?, 0)
        } else {
            let found = shared.controller(controller).filter(|found| found.kind == kind && found.host == host);
            let found = found.ok_or_else(|| in_data(16))?;
            if kind == ControllerKind::Discovery {
                return Err(in_command(42));
            }
            if found.host_id != host_id {
                return Err(plain(Status::HOST_ID_INCONSISTENT));
            }
            let taken = if is_asked { found.has_place(queue) } else { found.reserve_queue(queue) };
            let enabling = taken.map_err(|status| (status, if status == Status::CONNECT_INVALID { 42 } else { 0 }))?;
            (found, enabling)
        };
        if !is_asked {
            controller.note_activity(Instant::now());
        }
        let number: u64 = controller.number.into();
        let auth = is_asked.then(|| Auth::new(controller.host.clone()));
        let result = if is_asked { number | nvme::AUTHENTICATION_ASKED } else { number };
        Ok((Queue::new(controller, (queue, enabling), queue_entries + 1, self.local, auth), result))
    }
}
