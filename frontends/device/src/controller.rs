//! A controller: created by a host's admin queue, and owner of the host's further queues.
//!
//! # Invariants
//! - A controller is in the table of `shared` from its Connect until the admin queue's connection is closed, or the
//!   keep-alive timer expires. From then on [`Controller::is_over`] returns true, and each loop closes the controller's
//!   connections.
//! - A queue belongs to one enabling of the controller: after a reset, queues of the previous one are closed.
//! - A host that has not yet authenticated changes nothing of an existing controller: no queue number is taken, and its
//!   messages do not count as keep-alive. A controller that such a host's admin queue has created belongs to that host
//!   only.
//! - After a reset is completed, or an end is reported, no command of an older queue is executed: a queue holds `turns`
//!   while executing commands, and checks after acquiring `turns` whether the queue has ended; a reset or end waits for
//!   `turns` after the change.
//! - A shutdown notification works the same way, and clears the ready state until the next reset: later commands are
//!   refused with a status.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use nvme::{Configuration, ControllerKind, Property, ShutdownState, Status, StatusRegister};
use parking_lot::{Mutex, MutexGuard, RwLock, RwLockReadGuard};

use crate::events::Events;
use crate::limits;

pub(crate) struct Controller {
    pub(crate) number: u16,
    pub(crate) kind: ControllerKind,
    pub(crate) host: String,
    pub(crate) host_id: [u8; 16],
    pub(crate) made: Instant,
    state: Mutex<State>,
    is_over: AtomicBool,
    /// The value of [`State::accepts_commands`], for a cheap check in every command.
    is_ready: AtomicBool,
    /// Held shared by queues while they execute commands.
    turns: RwLock<()>,
    /// Number of enablings so far.
    enabling: AtomicU32,
    /// When the host last sent something, in ms since `made`.
    active_ms: AtomicU64,
}

/// The state that commands change.
#[derive(Default)]
pub(crate) struct State {
    configuration: Configuration,
    status: StatusRegister,
    pub(crate) keep_alive_ms: u32,
    /// Number of requested queues, minus one.
    pub(crate) queue_count: u16,
    /// A bit for each connected queue, from queue 1 on.
    queues: u64,
    pub(crate) events: Events,
}

impl Controller {
    pub(crate) fn new(number: u16, kind: ControllerKind, host: (String, [u8; 16]), keep_alive_ms: u32) -> Controller {
        let keep_alive_ms = keep_alive_of(kind, keep_alive_ms);
        let state = State { keep_alive_ms, queue_count: limits::QUEUE_COUNT_MAX - 1, ..State::default() };
        Controller {
            number,
            kind,
            host: host.0,
            host_id: host.1,
            made: Instant::now(),
            state: Mutex::new(state),
            is_over: AtomicBool::new(false),
            is_ready: AtomicBool::new(false),
            turns: RwLock::new(()),
            enabling: AtomicU32::new(0),
            active_ms: AtomicU64::new(0),
        }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Ends the controller: its queues will be closed. Returns true to exactly one of several concurrent callers,
    /// because its number may be reused soon.
    pub(crate) fn end(&self) -> bool {
        let was_over = self.is_over.swap(true, Ordering::AcqRel);
        self.await_turns();
        !was_over
    }

    /// Returns the guard that an I/O queue holds while it executes commands.
    pub(crate) fn turn(&self) -> RwLockReadGuard<'_, ()> {
        self.turns.read()
    }

    /// Returns whether a queue is executing commands.
    #[cfg(test)]
    pub(crate) fn is_in_turn(&self) -> bool {
        self.turns.is_locked()
    }

    /// Waits until each queue that is executing commands has finished its turn, so that later turns see earlier
    /// changes.
    fn await_turns(&self) {
        drop(self.turns.write());
    }

    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    pub(crate) fn enabling(&self) -> u32 {
        self.enabling.load(Ordering::Acquire)
    }

    /// Records that the host has sent something on one of the queues.
    pub(crate) fn note_activity(&self, now: Instant) {
        self.active_ms.store(now.saturating_duration_since(self.made).as_millis() as u64, Ordering::Relaxed);
    }

    /// Returns how long the host has been silent, if its keep-alive time exceeds the time that others can wait for its
    /// slot.
    pub(crate) fn silence(&self, now: Instant) -> Option<Duration> {
        let keep_alive = Duration::from_millis(self.state().keep_alive_ms.into());
        let heard = self.made + Duration::from_millis(self.active_ms.load(Ordering::Relaxed));
        let is_patient = keep_alive.is_zero() || keep_alive > limits::SILENCE_MAX;
        is_patient.then(|| now.saturating_duration_since(heard))
    }

    /// Returns the time until the keep-alive timer expires; `None` if it never does.
    pub(crate) fn time_left(&self) -> Option<Duration> {
        let keep_alive_ms = u64::from(self.state().keep_alive_ms);
        let heard = Duration::from_millis(self.active_ms.load(Ordering::Relaxed));
        let end = heard + Duration::from_millis(keep_alive_ms);
        (keep_alive_ms > 0).then(|| end.saturating_sub(self.made.elapsed()))
    }

    /// Returns whether a queue of this number can be created now, and the enabling it would belong to.
    pub(crate) fn has_place(&self, queue: u16) -> Result<u32, Status> {
        self.state().place_of(queue).map(|_| self.enabling())
    }

    /// Reserves the queue number, and returns its enabling. The host must be authenticated if that is required;
    /// otherwise another host could take the number from the controller's owner.
    pub(crate) fn reserve_queue(&self, queue: u16) -> Result<u32, Status> {
        let mut state = self.state();
        state.queues |= state.place_of(queue)?;
        Ok(self.enabling())
    }

    /// Releases the queue number of this enabling.
    pub(crate) fn release_queue(&self, queue: u16, enabling: u32) {
        let mut state = self.state();
        if self.enabling() == enabling {
            state.queues &= !1u64.checked_shl(u32::from(queue) - 1).unwrap_or(0);
        }
    }

    /// Writes a property. Returns true if queues have to be closed.
    pub(crate) fn configure(&self, configuration: Configuration) -> Result<bool, Status> {
        let mut state = self.state();
        let was_enabled = state.configuration.is_enabled();
        if configuration.is_enabled() && !was_enabled {
            let has_command_sets = self.kind == ControllerKind::Discovery || configuration.command_sets() == 6;
            if !has_command_sets || !configuration.has_entry_sizes() {
                return Err(Status::INVALID_FIELD);
            }
            state.status = StatusRegister { is_ready: true, ..StatusRegister::default() };
        }
        let is_shutdown = configuration.is_shutdown() && state.status.shutdown == ShutdownState::Normal;
        if is_shutdown {
            // Completed commands are durable, so a shutdown only waits for commands that are being executed.
            state.status.shutdown = ShutdownState::Complete;
        }
        let is_reset = was_enabled && !configuration.is_enabled();
        if is_reset {
            state.status = StatusRegister::default();
            state.queues = 0;
            state.events = Events::default();
            self.enabling.fetch_add(1, Ordering::AcqRel);
        }
        state.configuration = configuration;
        self.is_ready.store(state.accepts_commands(), Ordering::Release);
        drop(state);
        if is_reset || is_shutdown {
            self.await_turns();
        }
        Ok(is_reset)
    }

    /// Reads a property.
    pub(crate) fn property(&self, property: Property) -> u64 {
        let state = self.state();
        match property {
            Property::Capabilities => {
                nvme::Capabilities { queue_entries_max: limits::QUEUE_ENTRIES_MAX - 1, ready_timeout: 20 }.bits()
            }
            Property::Version => nvme::VERSION.into(),
            Property::Configuration => state.configuration.0.into(),
            Property::Status => state.status.bits().into(),
        }
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.is_ready.load(Ordering::Acquire)
    }
}

/// Returns the effective keep-alive time. Discovery controllers are short-lived: without a keep-alive time they get
/// Linux' default.
pub(crate) fn keep_alive_of(kind: ControllerKind, promised_ms: u32) -> u32 {
    let is_endless = kind == ControllerKind::Discovery && promised_ms == 0;
    if is_endless { limits::SILENCE_MAX.as_millis() as u32 } else { promised_ms }
}

impl State {
    /// Returns whether commands are executed: from enabling until shutdown.
    fn accepts_commands(&self) -> bool {
        self.status.is_ready && self.status.shutdown == ShutdownState::Normal
    }

    /// Returns the bit of a connectable queue.
    fn place_of(&self, queue: u16) -> Result<u64, Status> {
        if !self.accepts_commands() {
            return Err(Status::COMMAND_SEQUENCE_ERROR);
        }
        let bit = 1u64.checked_shl(u32::from(queue) - 1).ok_or(Status::CONNECT_INVALID)?;
        if queue > self.queue_count + 1 {
            return Err(Status::CONNECT_INVALID);
        }
        if self.queues & bit == 0 { Ok(bit) } else { Err(Status::CONNECT_BUSY) }
    }

    pub(crate) fn has_queues(&self) -> bool {
        self.queues != 0
    }
}
