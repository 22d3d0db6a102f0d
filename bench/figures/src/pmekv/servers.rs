//! Redis and Memcached: local servers without disk, reached through Unix sockets. Each thread has a connection, and
//! sends a request when the one before is answered.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::Error;
use crate::work::{Session, System};

/// The time after which a server that does not listen has failed.
const START_MAX: Duration = Duration::from_secs(20);
const LOOK_AGAIN: Duration = Duration::from_millis(5);
const END: &[u8] = b"\r\n";

/// Starts Redis without files of its own.
pub(super) fn redis(dir: &Path) -> Result<Server, Error> {
    Server::start(dir, Protocol::Redis, |home, socket| {
        let mut command = Command::new("redis-server");
        command.args(["--port", "0", "--save", "", "--appendonly", "no", "--unixsocket"]).arg(socket);
        command.arg("--dir").arg(home);
        command
    })
}

/// Starts a Memcached that refuses items when it is full and evicts none.
pub(super) fn memcached(dir: &Path) -> Result<Server, Error> {
    Server::start(dir, Protocol::Memcached, |_, socket| {
        let mut command = Command::new("memcached");
        command.args(["-u", "root", "-M", "-m", "8192", "-s"]).arg(socket);
        command
    })
}

/// The protocol of the requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Protocol {
    Redis,
    Memcached,
}

/// A server that runs until it is dropped.
pub(super) struct Server {
    protocol: Protocol,
    socket: PathBuf,
    process: Child,
    _home: TempDir,
}

impl Server {
    fn start(dir: &Path, protocol: Protocol, command: fn(&Path, &Path) -> Command) -> Result<Server, Error> {
        let home = tempfile::tempdir_in(dir)?;
        let socket = home.path().join("socket");
        let mut command = command(home.path(), &socket);
        let process = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn();
        let process = process.map_err(|error| format!("{}: {error}", command.get_program().display()))?;
        let mut server = Server { protocol, socket, process, _home: home };
        server.wait_until_it_listens()?;
        Ok(server)
    }

    fn wait_until_it_listens(&mut self) -> Result<(), Error> {
        let began = Instant::now();
        while let Err(error) = UnixStream::connect(&self.socket) {
            let ended = self.process.try_wait()?;
            if ended.is_some() || began.elapsed() > START_MAX {
                return Err(format!("{:?} does not listen at {}: {error}", self.protocol, self.socket.display()).into());
            }
            thread::sleep(LOOK_AGAIN);
        }
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl System for Server {
    fn session(&self) -> Result<Box<dyn Session + '_>, Error> {
        let replies = BufReader::with_capacity(1 << 16, UnixStream::connect(&self.socket)?);
        let (request, line, value) = Default::default();
        Ok(Box::new(Connection { protocol: self.protocol, replies, request, line, value }))
    }
}

/// A thread's connection.
struct Connection {
    protocol: Protocol,
    replies: BufReader<UnixStream>,
    request: Vec<u8>,
    line: Vec<u8>,
    value: Vec<u8>,
}

impl Connection {
    /// Sends the concatenated parts and reads the first line of the reply.
    fn ask(&mut self, parts: &[&[u8]]) -> Result<(), Error> {
        self.request.clear();
        parts.iter().for_each(|part| self.request.extend_from_slice(part));
        self.replies.get_mut().write_all(&self.request)?;
        self.read_line()
    }

    fn read_line(&mut self) -> Result<(), Error> {
        self.line.clear();
        self.replies.read_until(b'\n', &mut self.line)?;
        let line = self.line.strip_suffix(END).ok_or("the server has closed the connection")?;
        self.line.truncate(line.len());
        Ok(())
    }

    /// Fails unless this is the line.
    fn expect(&self, line: &[u8]) -> Result<(), Error> {
        if self.line == line {
            return Ok(());
        }
        Err(format!("{:?} answers '{}'", self.protocol, self.line.escape_ascii()).into())
    }

    /// Reads a value whose length is the line's last word, and the end of line after it.
    fn read_value(&mut self) -> Result<(), Error> {
        let digits = self.line.rsplit(|byte| !byte.is_ascii_digit()).next().unwrap_or_default();
        let len_bytes: usize = str::from_utf8(digits)?.parse()?;
        self.value.resize(len_bytes + END.len(), 0);
        self.replies.read_exact(&mut self.value)?;
        self.value.truncate(len_bytes);
        Ok(())
    }
}

impl Session for Connection {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        let [key_bytes, value_bytes] = [key, value].map(|bytes| bytes.len().to_string().into_bytes());
        match self.protocol {
            Protocol::Redis => {
                let head: [&[u8]; 5] = [b"*3\r\n$3\r\nSET\r\n$", &key_bytes, END, key, b"\r\n$"];
                self.ask(&[&head.concat(), &value_bytes, END, value, END])?;
                self.expect(b"+OK")
            }
            Protocol::Memcached => {
                self.ask(&[b"set ", key, b" 0 0 ", &value_bytes, END, value, END])?;
                self.expect(b"STORED")
            }
        }
    }

    fn get(&mut self, key: &[u8], found: &mut dyn FnMut(&[u8])) -> Result<bool, Error> {
        match self.protocol {
            Protocol::Redis => {
                self.ask(&[b"*2\r\n$3\r\nGET\r\n$", key.len().to_string().as_bytes(), END, key, END])?;
                if self.line == b"$-1" {
                    return Ok(false);
                }
                self.read_value()?;
            }
            Protocol::Memcached => {
                self.ask(&[b"get ", key, END])?;
                if self.line == b"END" {
                    return Ok(false);
                }
                self.read_value()?;
                self.read_line()?;
                self.expect(b"END")?;
            }
        }
        found(&self.value);
        Ok(true)
    }
}
