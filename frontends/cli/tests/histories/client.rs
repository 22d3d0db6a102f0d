//! A client of a server that may be killed.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};

use resp::{Protocol, Reply};

/// A reply of the server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Answer {
    Line(String),
    Number(i64),
    Value(Option<Vec<u8>>),
    All(Vec<Answer>),
}

pub(crate) struct Client(BufReader<TcpStream>);

impl Client {
    pub(crate) fn connect(addr: SocketAddr) -> io::Result<Client> {
        let stream = TcpStream::connect(addr)?;
        stream.set_nodelay(true)?;
        Ok(Client(BufReader::new(stream)))
    }

    /// Returns the reply to a request.
    ///
    /// # Errors
    /// The server was killed before it replied.
    ///
    /// # Panics
    /// The server refuses the request.
    pub(crate) fn call(&mut self, arguments: &[&[u8]]) -> io::Result<Answer> {
        self.send(&[arguments])?;
        self.answer()
    }

    pub(crate) fn send(&mut self, requests: &[&[&[u8]]]) -> io::Result<()> {
        let mut bytes = Vec::new();
        let mut request = Reply::new(&mut bytes, Protocol::Resp2);
        for arguments in requests {
            request.array(arguments.len());
            arguments.iter().for_each(|argument| request.bulk(argument));
        }
        self.0.get_mut().write_all(&bytes)
    }

    pub(crate) fn answer(&mut self) -> io::Result<Answer> {
        let mut line = String::new();
        self.0.read_line(&mut line)?;
        let Some(line) = line.strip_suffix("\r\n") else { return Err(io::ErrorKind::UnexpectedEof.into()) };
        let (kind, text) = line.split_at(1);
        let number = || text.parse::<i64>().expect("a number");
        match kind {
            "+" => Ok(Answer::Line(text.into())),
            ":" => Ok(Answer::Number(number())),
            "$" if number() < 0 => Ok(Answer::Value(None)),
            "$" => {
                let mut bytes = vec![0; number() as usize + 2];
                self.0.read_exact(&mut bytes)?;
                bytes.truncate(number() as usize);
                Ok(Answer::Value(Some(bytes)))
            }
            "*" => (0..number()).map(|_| self.answer()).collect::<io::Result<_>>().map(Answer::All),
            _ => panic!("the server refuses: {line}"),
        }
    }
}
