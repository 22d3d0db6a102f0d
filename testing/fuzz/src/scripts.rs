//! Scripts: any text runs, fails or is stopped, and nothing of it is left for the next script.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use lua_scripts::{Arguments, CallError, Host, Interpreter, Level, Outcome, Script, Stop, Watch};
use resp::{Protocol, Reply, Request};

use crate::served::frames;

/// Half a million instructions.
const CHECK_COUNT: u32 = 50;

const REPLY_BYTES_MAX: usize = 1 << 20;

/// Returns what a script can see of an earlier one.
const PROBE: &[u8] = b"local names = {} \
    for _, of in ipairs({_G, redis, string, table, math, coroutine, cjson, cmsgpack, struct, bit}) do \
        for name, value in pairs(of) do names[#names + 1] = tostring(name) .. ':' .. type(value) end \
    end \
    table.sort(names) \
    return {table.concat(names, ' '), ('a'):upper(), cjson.encode({1, {2}}), tostring(getmetatable(redis)), #KEYS, \
        redis.call('echo', 'a'), tostring(pcall(function() return nothing end))}";

thread_local! {
    static INTERPRETER: RefCell<Interpreter> = RefCell::new(Interpreter::new().expect("memory"));
}

/// Repeats every command.
struct Echo;

impl Host for Echo {
    fn call(&mut self, request: Request<'_>, protocol: Protocol, output: &mut Vec<u8>) -> Result<(), CallError> {
        let mut reply = Reply::new(output, protocol);
        reply.array(request.len());
        (0..request.len()).for_each(|index| reply.bulk(request.argument(index)));
        Ok(())
    }

    fn is_permitted(&mut self, request: Request<'_>) -> Option<bool> {
        Some(request.len() > 1)
    }

    fn log(&mut self, _: Level, _: &[u8]) {}
}

struct Limit(Cell<u32>);

impl Watch for Limit {
    fn check(&self) -> Option<Stop> {
        self.0.set(self.0.get().saturating_sub(1));
        (self.0.get() == 0).then_some(Stop::Killed)
    }
}

/// Returns the reply to a script; `None` if it failed.
fn run(interpreter: &mut Interpreter, script: &Script) -> Option<Vec<u8>> {
    interpreter.compile(script).ok()?;
    let mut output = Vec::new();
    let arguments = Arguments { keys: &[b"k"], values: &[b"v", b"\xff\0", b"12"] };
    let watch = Rc::new(Limit(Cell::new(CHECK_COUNT)));
    let mut reply = Reply::new(&mut output, Protocol::Resp3);
    match interpreter.run(&script.hash, arguments, &mut Echo, watch, (&mut reply, REPLY_BYTES_MAX)) {
        Outcome::Replied => Some(output),
        Outcome::Failed(_) | Outcome::Stopped(..) => None,
    }
}

/// A script ends, its reply is well formed, and afterwards another script sees the same as before.
pub fn scripts(data: &[u8]) {
    let Ok(script) = Script::parse(data) else { return };
    let probe = Script::parse(PROBE).expect("it has no options");
    INTERPRETER.with_borrow_mut(|interpreter| {
        let before = run(interpreter, &probe).expect("it runs");
        if let Some(output) = run(interpreter, &script) {
            assert_eq!(frames(&output).len(), 1, "one reply");
        }
        assert_eq!(run(interpreter, &probe).expect("it runs"), before);
    });
}
