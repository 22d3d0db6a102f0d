//! A client of a server, which sends one request at a time.

use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use hikv::Limits;

/// The time limit for connecting to a server on this host, and for each reply.
const PATIENCE: Duration = Duration::from_secs(5);

/// A reply of a server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Reply {
    /// A line that begins with `+`, or with `-` for an error.
    Line(String),
    /// A number.
    Integer(i64),
    /// A value, or none.
    Bulk(Option<Vec<u8>>),
}

/// An open connection.
pub(crate) struct Client {
    addr: SocketAddr,
    stream: BufReader<TcpStream>,
    greeting: Reply,
}

impl Client {
    /// Connects to `addr`; `None` unless a server there uses the protocol without TLS.
    pub(super) fn connect(addr: SocketAddr) -> Option<Client> {
        let stream = TcpStream::connect_timeout(&addr, PATIENCE).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).ok()?;
        stream.set_write_timeout(Some(PATIENCE)).ok()?;
        let mut client = Client { addr, stream: BufReader::new(stream), greeting: Reply::Bulk(None) };
        client.greeting = client.ask(&[b"PING"]).ok().filter(|reply| matches!(reply, Reply::Line(_)))?;
        Some(client)
    }

    /// Returns true if the server needs no password.
    pub(super) fn is_open(&self) -> bool {
        self.greeting == Reply::Line("+PONG".into())
    }

    /// Returns the options of `redis-cli` for this server.
    pub(super) fn options(&self) -> String {
        format!("-h {} -p {}", self.addr.ip(), self.addr.port())
    }

    /// Returns the address of the server.
    pub(crate) fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Sends a command and reads the reply.
    ///
    /// # Errors
    /// Errors of the connection; [`io::ErrorKind::InvalidData`] if the reply has an unknown form.
    pub(crate) fn ask(&mut self, words: &[&[u8]]) -> io::Result<Reply> {
        let mut request = format!("*{}\r\n", words.len()).into_bytes();
        for word in words {
            request.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
            request.extend_from_slice(word);
            request.extend_from_slice(b"\r\n");
        }
        self.stream.get_mut().write_all(&request)?;
        self.reply()
    }

    fn reply(&mut self) -> io::Result<Reply> {
        let line = self.line()?;
        let number = || line[1..].parse::<i64>().map_err(|_| unknown());
        match line.as_bytes().first() {
            Some(b'+' | b'-') => Ok(Reply::Line(line)),
            Some(b':') => Ok(Reply::Integer(number()?)),
            Some(b'$') => match number()? {
                -1 => Ok(Reply::Bulk(None)),
                len_bytes => self.bulk(u64::try_from(len_bytes).map_err(|_| unknown())?),
            },
            _ => Err(unknown()),
        }
    }

    fn line(&mut self) -> io::Result<String> {
        /// An upper bound for the length of an error.
        const LINE_BYTES_MAX: u64 = 64 * 1024;
        let mut line = String::new();
        (&mut self.stream).take(LINE_BYTES_MAX).read_line(&mut line)?;
        line.strip_suffix("\r\n").map(str::to_owned).ok_or_else(unknown)
    }

    fn bulk(&mut self, len_bytes: u64) -> io::Result<Reply> {
        if len_bytes > Limits::VALUE_BYTES_MAX {
            return Err(unknown());
        }
        let mut value = Vec::new();
        (&mut self.stream).take(len_bytes + 2).read_to_end(&mut value)?;
        if value.len() as u64 != len_bytes + 2 || !value.ends_with(b"\r\n") {
            return Err(unknown());
        }
        value.truncate(len_bytes as usize);
        Ok(Reply::Bulk(Some(value)))
    }
}

fn unknown() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        "the reply is not one of the Redis protocol; another program may listen there",
    )
}

impl fmt::Display for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reply::Line(line) => f.write_str(line.trim_start_matches('-')),
            Reply::Integer(number) => number.fmt(f),
            Reply::Bulk(value) => value.as_deref().unwrap_or_default().escape_ascii().fmt(f),
        }
    }
}
