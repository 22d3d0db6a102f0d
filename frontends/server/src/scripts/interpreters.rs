//! One interpreter for each thread that runs scripts.

use std::cell::RefCell;
use std::rc::Rc;

use lua_scripts::{Arguments, Interpreter, Outcome, Script, Watch};
use resp::Reply;

use super::{ScriptHost, Scripts};
use crate::errors::Refusal;
use crate::execution::call::REPLY_BYTES_MAX;

thread_local! {
    static INTERPRETER: RefCell<Option<Prepared>> = const { RefCell::new(None) };
}

/// An interpreter, and the generation of the scripts that it has compiled.
struct Prepared {
    interpreter: Interpreter,
    generation: u64,
}

/// Calls `operate` with this thread's interpreter.
fn with<R>(scripts: &Scripts, operate: impl FnOnce(&mut Interpreter) -> R) -> Result<R, Refusal> {
    INTERPRETER.with_borrow_mut(|prepared| {
        let before_bytes = prepared.as_ref().map_or(0, |prepared| prepared.interpreter.used_bytes());
        let generation = scripts.cache.generation();
        // A new one needs less memory than one that has forgotten its scripts.
        let interpreter = match prepared {
            Some(prepared) if prepared.generation == generation => &mut prepared.interpreter,
            other => {
                let interpreter = Interpreter::new().map_err(Refusal::Message)?;
                &mut other.insert(Prepared { interpreter, generation }).interpreter
            }
        };
        let result = operate(interpreter);
        scripts.note_bytes(interpreter.used_bytes() as i64 - before_bytes as i64);
        Ok(result)
    })
}

/// Compiles the script unless this thread's interpreter has it.
pub(crate) fn prepare(scripts: &Scripts, script: &Script) -> Result<(), Refusal> {
    with(scripts, |interpreter| compile(interpreter, script))?
}

fn compile(interpreter: &mut Interpreter, script: &Script) -> Result<(), Refusal> {
    if interpreter.has(&script.hash) { Ok(()) } else { interpreter.compile(script).map_err(Refusal::Message) }
}

/// Runs a script and writes its reply. Compiles it first if needed: scripts may have been forgotten a moment ago.
pub(crate) fn run(
    scripts: &Scripts,
    script: &Script,
    arguments: Arguments<'_>,
    host: &mut ScriptHost<'_, '_>,
    watch: Rc<dyn Watch>,
    reply: &mut Reply<'_>,
) -> Result<Outcome, Refusal> {
    with(scripts, |interpreter| {
        compile(interpreter, script)?;
        Ok(interpreter.run(&script.hash, arguments, host, watch, (reply, REPLY_BYTES_MAX)))
    })?
}
