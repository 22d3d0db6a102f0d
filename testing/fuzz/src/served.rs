//! A server for a target, one for each thread and target.

use std::path::Path;

use hikv::{Durability, Options};
use redis_protocol::resp3::types::OwnedFrame;
use redis_protocol::{resp2, resp3};
use server::{Config, InProcess};
use tempfile::TempDir;

/// The environment variable with the directory for stores; by default the directory for temporary files.
pub const STORES_VARIABLE: &str = "HIKV_FUZZ_DIR";

/// The maximum length of a value, so that no input is slow only because of its length.
const BULK_BYTES_MAX: usize = 1 << 20;

/// The maximum size of a store.
const REGION_BYTES_MAX: u64 = 256 << 20;

/// The smallest number above one: an input walks all partitions, and once more when it is undone.
const PARTITION_COUNT: u32 = 2;

pub(crate) struct Served {
    server: InProcess,
    _dir: TempDir,
}

impl Served {
    /// Starts a server whose default user has these rights.
    pub(crate) fn new(rules: &str) -> Served {
        let parent = std::env::var_os(STORES_VARIABLE).unwrap_or_else(|| std::env::temp_dir().into_os_string());
        let dir = tempfile::tempdir_in(Path::new(&parent)).expect("a directory for the store");
        let options = Options::new()
            .durability(Durability::Process)
            .region_bytes_max(REGION_BYTES_MAX)
            .tuning(|tuning| tuning.partition_count(PARTITION_COUNT));
        let store = options.open(dir.path()).expect("the store opens");
        let config = Config {
            addrs: vec!["127.0.0.1:0".into()],
            threads: 1,
            bulk_bytes_max: BULK_BYTES_MAX,
            ..Config::default()
        };
        let server = InProcess::new(store, config).expect("a free port");
        let mut served = Served { server, _dir: dir };
        assert_eq!(served.answer(format!("ACL SETUSER default {rules}\n").as_bytes()), b"+OK\r\n");
        served
    }

    /// Returns the bytes that a new client receives for `input`.
    pub(crate) fn answer(&mut self, input: &[u8]) -> Vec<u8> {
        self.server.answer(input).expect("no value fails")
    }

    /// Returns the reply to one request of these arguments, in version 2 of the protocol.
    pub(crate) fn call(&mut self, arguments: &[&[u8]]) -> resp2::types::OwnedFrame {
        let mut request = Vec::new();
        write_request(&mut request, arguments);
        let bytes = self.answer(&request);
        let (reply, read_bytes) = resp2::decode::decode(&bytes).expect("it is well formed").expect("it is complete");
        assert_eq!(read_bytes, bytes.len(), "one reply to one request");
        reply
    }
}

/// Appends a request of these arguments.
pub(crate) fn write_request(request: &mut Vec<u8>, arguments: &[&[u8]]) {
    let mut writer = resp::Reply::new(request, resp::Protocol::Resp2);
    writer.array(arguments.len());
    arguments.iter().for_each(|argument| writer.bulk(argument));
}

/// Parses the replies for a client of version 3, which must be complete. Every byte that is not ASCII is masked,
/// because errors repeat a client's words unchanged, as in Redis, and the parser expects UTF-8 there. Sets are parsed
/// as lists, because the parser allows no map in a set, which Redis has in `COMMAND INFO`.
pub(crate) fn frames(bytes: &[u8]) -> Vec<OwnedFrame> {
    let mut ascii: Vec<u8> = bytes.iter().map(|byte| if byte.is_ascii() { *byte } else { b'?' }).collect();
    for at in 0..ascii.len() {
        if ascii[at] == b'~' && (at == 0 || ascii[..at].ends_with(b"\r\n")) {
            ascii[at] = b'*';
        }
    }
    frames_as_they_are(&ascii)
}

/// Parses the replies unmasked.
pub(crate) fn frames_as_they_are(mut bytes: &[u8]) -> Vec<OwnedFrame> {
    let mut frames = Vec::new();
    while !bytes.is_empty() {
        let (frame, read_bytes) = resp3::decode::complete::decode(bytes)
            .unwrap_or_else(|error| panic!("{error}: {}", bytes.escape_ascii()))
            .unwrap_or_else(|| panic!("the reply is cut off: {}", bytes.escape_ascii()));
        frames.push(frame);
        bytes = &bytes[read_bytes..];
    }
    frames
}
