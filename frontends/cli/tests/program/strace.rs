//! Traces system calls, or makes them fail, with strace.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, ChildStderr, Command, Output, Stdio};

use crate::serve::Serving;
use crate::support::{Place, left_out};

/// More than the length of any argument, so that the trace contains all written bytes.
const ARGUMENT_BYTES_MAX: &str = "1048576";

/// Runs a command with strace and its `-e` options `expressions`. Returns the output and the trace, with the paths of
/// open files; `None` if there is no strace, or it is not allowed.
pub(crate) fn traced(place: &Place, command: &Command, expressions: &[&str]) -> Option<(Output, String)> {
    let trace = place.file("trace");
    let mut strace = Command::new("strace");
    strace.args(["-f", "-y", "-qq", "-s", ARGUMENT_BYTES_MAX, "-o"]).arg(&trace);
    expressions.iter().for_each(|expression| _ = strace.args(["-e", expression]));
    let ended = strace.arg(command.get_program()).args(command.get_args()).stdin(Stdio::null()).output();
    let Ok(ended) = ended else {
        left_out("there is no strace");
        return None;
    };
    let words = String::from_utf8_lossy(&ended.stderr);
    if words.contains("strace: ") {
        left_out(&format!("strace cannot watch: {words}"));
        return None;
    }
    let lines = fs::read_to_string(trace).unwrap();
    Some((ended, lines))
}

/// An strace of all threads of a server.
pub(crate) struct Strace {
    child: Child,
    /// Kept open: strace reports new threads here, and would die of SIGPIPE.
    _messages: BufReader<ChildStderr>,
    trace: PathBuf,
}

impl Strace {
    /// Attaches strace with its `-e` options `expressions`; traces every call from the return of this function on.
    /// `None` if there is no strace, or it is not allowed.
    pub(crate) fn attach(place: &Place, serving: &Serving, expressions: &[&str]) -> Option<Strace> {
        let trace = place.file("trace");
        let mut strace = Command::new("strace");
        strace.args(["-f", "-y", "-s", ARGUMENT_BYTES_MAX, "-p", &serving.child.id().to_string(), "-o"]).arg(&trace);
        expressions.iter().for_each(|expression| _ = strace.args(["-e", expression]));
        let Ok(mut child) = strace.stdin(Stdio::null()).stderr(Stdio::piped()).spawn() else {
            left_out("there is no strace");
            return None;
        };
        let mut said = String::new();
        let mut messages = BufReader::new(child.stderr.take().unwrap());
        messages.read_line(&mut said).unwrap();
        let strace = Strace { child, _messages: messages, trace };
        if !said.contains(" attached") {
            left_out(&format!("strace cannot watch: {said}"));
            return None;
        }
        Some(strace)
    }

    /// Waits for the end of the server, and returns the trace.
    pub(crate) fn lines(mut self) -> String {
        self.child.wait().unwrap();
        fs::read_to_string(&self.trace).unwrap()
    }
}

/// Detaches strace from the server.
impl Drop for Strace {
    fn drop(&mut self) {
        let _ = (self.child.kill(), self.child.wait());
    }
}
