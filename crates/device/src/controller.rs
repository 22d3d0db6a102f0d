//! A controller: what a host's admin queue has made, and its further queues are of.
//!
//! # Invariants
//! - A controller is in the table of `shared` from its Connect until the admin queue's connection is closed, or the keep-alive
//!   time is over. From then on [`Controller::is_over`] holds, and each connection of the controller is closed by the loop
//!   that has it.
//! - A queue belongs to one enabling of the controller: after a reset queues of the one before are closed.
//! - A host that has to show its secret, and has not, changes nothing of a controller that is there: no queue's number is taken, and
//!   nothing is heard. A controller that such a host's admin queue has made is the host's own.
//! - When a reset is completed, or an end told of, no command of an older queue is carried out any more: a queue holds `turns` while
//!   carrying out commands, and looks, once `turns` is held, whether it is over; a reset and an end wait for `turns` behind their
//!   change.
//! - A shutdown notification does the same, and takes the readiness away until the next reset: commands that come later get a status.

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
    /// As [`State::takes_commands`], for every command.
    is_ready: AtomicBool,
    /// Shared by queues that carry out commands.
    turns: RwLock<()>,
    /// Enablings so far.
    enabling: AtomicU32,
    /// When the host was last heard, in ms since `made`.
    heard_ms: AtomicU64,
}

/// What commands change.
#[derive(Default)]
pub(crate) struct State {
    configuration: Configuration,
    status: StatusRegister,
    pub(crate) keep_alive_ms: u32,
    /// Queues that the host asked for, less one.
    pub(crate) queue_count: u16,
    /// A bit for each queue that is connected, from queue 1 on.
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
            heard_ms: AtomicU64::new(0),
        }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Its queues are to be closed. True for the one thread that ends it, of several at once: its number may be another's soon.
    pub(crate) fn end(&self) -> bool {
        let was_over = self.is_over.swap(true, Ordering::AcqRel);
        self.await_turns();
        !was_over
    }

    /// Held by a queue, but not the admin queue, while it carries out commands.
    pub(crate) fn turn(&self) -> RwLockReadGuard<'_, ()> {
        self.turns.read()
    }

    /// Whether a queue carries out commands.
    #[cfg(test)]
    pub(crate) fn is_in_turn(&self) -> bool {
        self.turns.is_locked()
    }

    /// Returns when each queue that carries out commands has seen what was changed before.
    fn await_turns(&self) {
        drop(self.turns.write());
    }

    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    pub(crate) fn enabling(&self) -> u32 {
        self.enabling.load(Ordering::Acquire)
    }

    /// The host has sent something on one of the queues.
    pub(crate) fn hear(&self, now: Instant) {
        self.heard_ms.store(now.saturating_duration_since(self.made).as_millis() as u64, Ordering::Relaxed);
    }

    /// How long nothing was heard of a host that may be silent for longer than others can wait for its place.
    pub(crate) fn silence(&self, now: Instant) -> Option<Duration> {
        let keep_alive = Duration::from_millis(self.state().keep_alive_ms.into());
        let heard = self.made + Duration::from_millis(self.heard_ms.load(Ordering::Relaxed));
        let is_patient = keep_alive.is_zero() || keep_alive > limits::SILENCE_MAX;
        is_patient.then(|| now.saturating_duration_since(heard))
    }

    /// How long until the keep-alive time is over; `None` if it never is.
    pub(crate) fn time_left(&self) -> Option<Duration> {
        let keep_alive_ms = u64::from(self.state().keep_alive_ms);
        let heard = Duration::from_millis(self.heard_ms.load(Ordering::Relaxed));
        let end = heard + Duration::from_millis(keep_alive_ms);
        (keep_alive_ms > 0).then(|| end.saturating_sub(self.made.elapsed()))
    }

    /// Whether there can be a queue of this number now; it would be of the enabling that is returned.
    pub(crate) fn has_place(&self, queue: u16) -> Result<u32, Status> {
        self.state().place_of(queue).map(|_| self.enabling())
    }

    /// Makes a queue of this number, of the enabling that is returned. The host has shown its secret, where one is asked for: another host
    /// would keep the number from the controller's own.
    pub(crate) fn take_queue(&self, queue: u16) -> Result<u32, Status> {
        let mut state = self.state();
        state.queues |= state.place_of(queue)?;
        Ok(self.enabling())
    }

    /// The queue of this number, of this enabling, is there no more.
    pub(crate) fn give_queue_back(&self, queue: u16, enabling: u32) {
        let mut state = self.state();
        if self.enabling() == enabling {
            state.queues &= !1u64.checked_shl(u32::from(queue) - 1).unwrap_or(0);
        }
    }

    /// Writes a property. True if queues are to be closed.
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
            // What was completed is durable: commands that are carried out now are waited for, and nothing else.
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
        self.is_ready.store(state.takes_commands(), Ordering::Release);
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

/// The keep-alive time of a host that promises so much. Discovery is short: a host that promises nothing is held to Linux' time.
pub(crate) fn keep_alive_of(kind: ControllerKind, promised_ms: u32) -> u32 {
    let is_endless = kind == ControllerKind::Discovery && promised_ms == 0;
    if is_endless { limits::SILENCE_MAX.as_millis() as u32 } else { promised_ms }
}

impl State {
    /// Whether commands are carried out: from when the host has enabled the controller to when it has it shut down.
    fn takes_commands(&self) -> bool {
        self.status.is_ready && self.status.shutdown == ShutdownState::Normal
    }

    /// The bit of a queue that can be connected.
    fn place_of(&self, queue: u16) -> Result<u64, Status> {
        if !self.takes_commands() {
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
