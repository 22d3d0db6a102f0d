//! A server on a free port of the loopback interface, and a client that sees every byte.

#![allow(dead_code, reason = "each test file uses its own part")]

use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use hikv::{Options, Store};
use resp::{Protocol, Reply};
use server::{Config, HttpPort, Parameters, Server, StopHandle};
use tempfile::TempDir;

/// Longer than any reply takes, so that a test fails instead of hanging.
const REPLY_MAX: Duration = Duration::from_secs(60);

pub(crate) struct TestServer {
    pub(crate) addr: SocketAddr,
    tls_addr: Option<SocketAddr>,
    pub(crate) stop: StopHandle,
    pub(crate) store: Store,
    /// The monitoring port, if configured.
    pub(crate) http: Option<HttpPort>,
    thread: Option<JoinHandle<io::Result<()>>>,
    dir: Option<TempDir>,
}

impl TestServer {
    /// Starts a server with two event loops.
    pub(crate) fn start() -> TestServer {
        TestServer::with(Config { threads: 2, ..Config::default() })
    }

    /// Starts a server whose connections all share one event loop.
    pub(crate) fn single() -> TestServer {
        TestServer::with(Config { threads: 1, ..Config::default() })
    }

    /// Starts a server with one event loop that permits DEBUG.
    pub(crate) fn debugging() -> TestServer {
        let mut parameters = Parameters::default();
        parameters.set("enable-debug-command", "local").expect("a parameter");
        TestServer::with(Config { threads: 1, parameters, ..Config::default() })
    }

    pub(crate) fn with(config: Config) -> TestServer {
        TestServer::of(&Options::new(), config)
    }

    pub(crate) fn of(options: &Options, config: Config) -> TestServer {
        TestServer::at(tempfile::tempdir().expect("a temporary directory"), options, config)
    }

    /// Starts a server with two event loops on a new store in `dir`.
    pub(crate) fn at_dir(dir: TempDir) -> TestServer {
        TestServer::at(dir, &Options::new(), Config { threads: 2, ..Config::default() })
    }

    /// Closes the store, reopens it and serves it again.
    pub(crate) fn restarted(mut self) -> TestServer {
        let dir = self.dir.take().expect("a server has a directory");
        drop(self);
        TestServer::at(dir, &Options::new(), Config { threads: 2, ..Config::default() })
    }

    fn at(dir: TempDir, options: &Options, config: Config) -> TestServer {
        let store = options.open(dir.path()).expect("the store opens");
        let config = Config { addrs: vec!["127.0.0.1:0".into()], ..config };
        let stop = StopHandle::new();
        let http = HttpPort::open(&config).expect("a free port binds");
        let server = Server::bind(store.clone(), config, stop.clone()).expect("a free port binds");
        http.iter().for_each(|port| server.show_on(port));
        let addr = server.local_addrs().next().expect("there is an address");
        let tls_addr = server.local_tls_addrs().next();
        let thread = thread::spawn(move || server.run());
        TestServer { addr, tls_addr, stop, store, http, thread: Some(thread), dir: Some(dir) }
    }

    pub(crate) fn tls_addr(&self) -> SocketAddr {
        self.tls_addr.expect("the server was configured to listen for TLS")
    }

    pub(crate) fn client(&self) -> Client {
        Client::connect(self.addr)
    }

    /// Waits until the server has ended; something must have caused it.
    pub(crate) fn join(&mut self) -> io::Result<()> {
        self.thread.take().map_or(Ok(()), |thread| thread.join().expect("the server does not panic"))
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.stop.stop();
        let outcome = self.join();
        if !thread::panicking() {
            outcome.expect("the server ends without an error");
        }
    }
}

#[derive(Clone, PartialEq)]
pub(crate) enum Value {
    Simple(String),
    Error(String),
    Integer(i64),
    Bulk(Vec<u8>),
    Null,
    Array(Vec<Value>),
    /// Alternating names and values (RESP3).
    Map(Vec<Value>),
    /// RESP3.
    Set(Vec<Value>),
    /// A verbatim text with its format (RESP3).
    Text(String),
    /// A push message (RESP3).
    Push(Vec<Value>),
    /// A boolean, double or big number, as sent (RESP3).
    Other(String),
}

/// Shows only the start of a long value.
impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Simple(text) => write!(f, "+{text}"),
            Value::Error(text) => write!(f, "-{text}"),
            Value::Integer(number) => write!(f, ":{number}"),
            Value::Bulk(bytes) => write!(f, "${}:{}", bytes.len(), bytes[..bytes.len().min(32)].escape_ascii()),
            Value::Null => f.write_str("null"),
            Value::Other(text) => f.write_str(text),
            Value::Array(values) | Value::Map(values) | Value::Set(values) | Value::Push(values) => {
                f.debug_list().entries(values).finish()
            }
            Value::Text(text) => write!(f, "={text}"),
        }
    }
}

pub(crate) fn ok() -> Value {
    Value::Simple("OK".into())
}

pub(crate) fn bulk(bytes: impl AsRef<[u8]>) -> Value {
    Value::Bulk(bytes.as_ref().to_vec())
}

pub(crate) fn error(text: &str) -> Value {
    Value::Error(text.into())
}

pub(crate) fn int(number: i64) -> Value {
    Value::Integer(number)
}

pub(crate) fn array<const N: usize>(values: [Value; N]) -> Value {
    Value::Array(values.into())
}

/// Encodes a request as clients do.
pub(crate) fn encode<A: AsRef<[u8]>>(arguments: &[A]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut reply = Reply::new(&mut bytes, Protocol::Resp2);
    reply.array(arguments.len());
    arguments.iter().for_each(|argument| reply.bulk(argument.as_ref()));
    bytes
}

pub(crate) struct Client<S = TcpStream> {
    stream: BufReader<S>,
}

impl Client {
    pub(crate) fn connect(addr: SocketAddr) -> Client {
        let stream = TcpStream::connect(addr).expect("the server listens");
        stream.set_read_timeout(Some(REPLY_MAX)).expect("a timeout is set");
        stream.set_write_timeout(Some(REPLY_MAX)).expect("a timeout is set");
        stream.set_nodelay(true).expect("nodelay is set");
        Client::over(stream)
    }

    /// Sends as much as the socket accepts without blocking, and returns the length.
    pub(crate) fn send_some(&mut self, bytes: &[u8]) -> usize {
        let stream = self.stream.get_mut();
        stream.set_nonblocking(true).expect("the mode is set");
        let outcome = stream.write(bytes);
        stream.set_nonblocking(false).expect("the mode is set");
        match outcome {
            Ok(sent_bytes) => sent_bytes,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
            Err(error) => panic!("the connection failed: {error}"),
        }
    }

    /// Returns the client's own address.
    pub(crate) fn addr(&self) -> SocketAddr {
        self.stream.get_ref().local_addr().expect("the socket has an address")
    }

    /// Reads and discards some received bytes; returns false once the server has closed the connection.
    pub(crate) fn try_skip(&mut self) -> bool {
        let received = self.stream.fill_buf().map_or(0, <[u8]>::len);
        self.stream.consume(received);
        received > 0
    }

    /// Shuts down the sending side.
    pub(crate) fn end(&mut self) {
        self.stream.get_mut().shutdown(std::net::Shutdown::Write).expect("the connection is open");
    }
}

impl<S: Read + Write> Client<S> {
    pub(crate) fn over(stream: S) -> Client<S> {
        Client { stream: BufReader::new(stream) }
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.stream.get_mut().write_all(bytes).expect("the server takes what is sent");
    }

    /// Like [`Client::send`], to a server that may have closed the connection.
    pub(crate) fn try_send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.get_mut().write_all(bytes)
    }

    pub(crate) fn call<A: AsRef<[u8]>>(&mut self, arguments: &[A]) -> Value {
        self.send(&encode(arguments));
        self.reply()
    }

    /// Sends an inline command and returns its reply.
    pub(crate) fn say(&mut self, line: &str) -> Value {
        self.send(format!("{line}\r\n").as_bytes());
        self.reply()
    }

    /// Sends each line and checks its reply.
    pub(crate) fn converse<const N: usize>(&mut self, lines: [(&str, Value); N]) {
        for (line, wanted) in lines {
            assert_eq!(self.say(line), wanted, "{line}");
        }
    }

    pub(crate) fn reply(&mut self) -> Value {
        let line = self.line();
        let (kind, text) = line.split_at(1);
        let number = || text.parse::<i64>().expect("a number");
        match kind {
            "+" => Value::Simple(text.into()),
            "-" => Value::Error(text.into()),
            ":" => Value::Integer(number()),
            "$" | "*" if number() == -1 => Value::Null,
            "$" => Value::Bulk(self.bulk(number() as usize)),
            "*" => Value::Array(self.replies(number())),
            "%" => Value::Map(self.replies(2 * number())),
            "~" => Value::Set(self.replies(number())),
            "=" => Value::Text(String::from_utf8(self.bulk(number() as usize)).expect("a text")),
            ">" => Value::Push(self.replies(number())),
            "#" | "," | "(" => Value::Other(line),
            "_" => Value::Null,
            _ => panic!("not a reply: {line:?}"),
        }
    }

    fn replies(&mut self, count: i64) -> Vec<Value> {
        (0..count).map(|_| self.reply()).collect()
    }

    /// Returns whether the server has closed the connection after all replies were read.
    pub(crate) fn is_at_end(&mut self) -> bool {
        self.rest().is_empty()
    }

    /// Returns everything received until the server closes the connection.
    pub(crate) fn rest(&mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        if let Err(error) = self.stream.read_to_end(&mut rest) {
            assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
        }
        rest
    }

    /// Returns whether a line of CLIENT LIST contains this word.
    pub(crate) fn is_listed(&mut self, word: &str) -> bool {
        let Value::Bulk(list) = self.say("CLIENT LIST") else { panic!("not a text") };
        String::from_utf8(list).expect("a text").split_whitespace().any(|other| other == word)
    }

    /// Reads the first line of a reply.
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.stream.read_line(&mut line).expect("a reply comes in time");
        line.strip_suffix("\r\n").unwrap_or_else(|| panic!("the reply breaks off: {line:?}")).into()
    }

    fn bulk(&mut self, len_bytes: usize) -> Vec<u8> {
        let mut bytes = vec![0; len_bytes + 2];
        self.stream.read_exact(&mut bytes).expect("a value comes whole");
        assert_eq!(bytes.split_off(len_bytes), b"\r\n");
        bytes
    }
}

/// Returns bytes that depend on their position, so that a lost or swapped piece is detected.
pub(crate) fn patterned(len_bytes: usize) -> Vec<u8> {
    (0..len_bytes as u64).map(|index| (index.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect()
}
