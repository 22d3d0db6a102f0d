//! The end of a script before it has finished.
//!
//! A hook runs every [`INSTRUCTION_COUNT`] instructions and asks the script's [`Watch`]. To stop a script, the hook
//! raises an error. The script may catch it, so from then on the hook runs at every line and raises it again, until the
//! script has left all of its protected calls.
//!
//! A single call of a library function is not interrupted. Memory limits bound how much it can read and write. The
//! functions with patterns, such as `string.find`, may nevertheless take any time, as in Redis: they try a pattern in
//! all ways.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use mlua::{HookTriggers, Lua, VmState};

use crate::errors::ScriptError;

/// About 50 microseconds.
const INSTRUCTION_COUNT: u32 = 10_000;

/// Why a script was stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// By a user.
    Killed,
    /// By the server, which may start it again.
    Abandoned,
}

/// Decides whether a running script continues.
pub trait Watch {
    /// Returns a reason to stop the script.
    fn check(&self) -> Option<Stop>;
}

/// The state of the running script that its hook uses.
#[derive(Default)]
pub(crate) struct Control {
    watch: RefCell<Option<Rc<dyn Watch>>>,
    stopped: Cell<Option<Stop>>,
}

impl Control {
    /// Begins a script: sets the hook unless a previous script has left it set.
    pub(crate) fn begin(self: &Rc<Control>, lua: &Lua, watch: Rc<dyn Watch>) -> mlua::Result<()> {
        let is_first = self.watch.replace(Some(watch)).is_none();
        if self.stopped.take().is_some() || is_first {
            self.hook(lua, HookTriggers::new().every_nth_instruction(INSTRUCTION_COUNT))?;
        }
        Ok(())
    }

    /// Returns why the script was stopped.
    pub(crate) fn stopped(&self) -> Option<Stop> {
        self.stopped.get()
    }

    /// Stops the script: returns the error to raise.
    pub(crate) fn stop(self: &Rc<Control>, lua: &Lua, stop: Stop) -> mlua::Error {
        self.stopped.set(Some(stop));
        match self.hook(lua, HookTriggers::new().every_line().every_nth_instruction(1)) {
            Ok(()) => ScriptError::stopped(stop).into(),
            Err(error) => error,
        }
    }

    fn hook(self: &Rc<Control>, lua: &Lua, triggers: HookTriggers) -> mlua::Result<()> {
        let control = Rc::downgrade(self);
        lua.set_global_hook(triggers, move |lua, _| {
            let Some(control) = control.upgrade() else { return Ok(VmState::Continue) };
            let check = || control.watch.borrow().as_ref().and_then(|watch| watch.check());
            // A stop sets the hook of its own coroutine only: each other one is stopped at its next check.
            let stop = control.stopped.get().or_else(check);
            stop.map_or(Ok(VmState::Continue), |stop| Err(control.stop(lua, stop)))
        })
    }
}
