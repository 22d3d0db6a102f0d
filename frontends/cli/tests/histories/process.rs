//! A server in a separate process.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

pub(crate) struct Process {
    child: Child,
    pub(crate) addr: SocketAddr,
    /// Kept open: the server prints to it.
    _stdout: BufReader<ChildStdout>,
}

impl Process {
    /// Starts a server for the store in `dir` on a free port.
    pub(crate) fn serve(dir: &Path) -> Process {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hikv"));
        command.arg("serve").arg(dir).args(["--addr", "127.0.0.1:0", "--threads", "2"]);
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the server starts");
        let mut stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        let addr = stdout.by_ref().lines().find_map(|line| {
            let line = line.expect("the server says where it listens");
            let addr = line.trim_start().strip_prefix("address")?.trim_start().split(',').next()?.to_owned();
            Some(addr.parse().expect("an address"))
        });
        Process { addr: addr.expect("the server says where it listens"), child, _stdout: stdout }
    }

    /// Sends SIGKILL and waits for the end of the process.
    pub(crate) fn kill(mut self) {
        self.child.kill().expect("the server can be killed");
        self.child.wait().expect("the server ends");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // A failing test leaves no server behind. A killed server is not affected.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
