//! The writer of replies, checked with a client's parser.

use redis_protocol::resp2::types::OwnedFrame as Frame2;
use redis_protocol::resp3::types::OwnedFrame as Frame3;
use redis_protocol::{resp2, resp3};
use resp::{Protocol, Reply};

/// The nesting depth of replies; the client's parser has its own limit.
const DEPTH_MAX: usize = 5;

/// A reply of any kind.
#[derive(Debug)]
enum Node {
    Simple(String),
    Error(String),
    Integer(i64),
    Bulk(Vec<u8>),
    Text(String),
    NullBulk,
    NullArray,
    Boolean(bool),
    Array(Vec<Node>),
    Map(Vec<(Node, Node)>),
}

/// A client reads exactly the written reply, in both versions of the protocol.
pub fn replies(data: &[u8]) {
    let node = Node::of(&mut &data[..], 0);
    let mut bytes = Vec::new();
    node.write(&mut Reply::new(&mut bytes, Protocol::Resp2));
    let (frame, read_bytes) = resp2::decode::decode(&bytes).expect("it is well formed").expect("it is complete");
    assert_eq!(read_bytes, bytes.len());
    assert!(node.is_frame2(&frame), "{node:?} became {frame:?}");

    bytes.clear();
    node.write(&mut Reply::new(&mut bytes, Protocol::Resp3));
    let (frame, read_bytes) =
        resp3::decode::complete::decode(&bytes).expect("it is well formed").expect("it is complete");
    assert_eq!(read_bytes, bytes.len());
    assert!(node.is_frame3(&frame), "{node:?} became {frame:?}");
}

impl Node {
    /// Parses a reply from the front of `data`; any bytes are valid.
    fn of(data: &mut &[u8], depth: usize) -> Node {
        let kind_count = if depth < DEPTH_MAX { 10 } else { 8 };
        match byte_of(data) % kind_count {
            0 => Node::Simple(text_of(data)),
            1 => Node::Error(text_of(data)),
            2 => Node::Integer(integer_of(data)),
            3 => Node::Bulk(bytes_of(data).to_vec()),
            4 => Node::Text(text_of(data)),
            5 => Node::NullBulk,
            6 => Node::NullArray,
            7 => Node::Boolean(byte_of(data) & 1 != 0),
            8 => Node::Array((0..byte_of(data) % 8).map(|_| Node::of(data, depth + 1)).collect()),
            _ => {
                let key = |index: u8, data: &mut &[u8]| Node::Bulk([&[index], bytes_of(data)].concat());
                let pair = |index| (key(index, data), Node::of(data, depth + 1));
                Node::Map((0..4).map(pair).collect())
            }
        }
    }

    fn write(&self, reply: &mut Reply<'_>) {
        match self {
            Node::Simple(text) => reply.simple(text),
            Node::Error(text) => reply.error(text.as_bytes()),
            Node::Integer(number) => reply.integer(*number),
            Node::Bulk(bytes) => reply.bulk(bytes),
            Node::Text(text) => reply.text(text),
            Node::NullBulk => reply.null_bulk(),
            Node::NullArray => reply.null_array(),
            Node::Boolean(value) => reply.boolean(*value),
            Node::Array(nodes) => {
                reply.array(nodes.len());
                nodes.iter().for_each(|node| node.write(reply));
            }
            Node::Map(pairs) => {
                reply.map(pairs.len());
                pairs.iter().for_each(|(key, value)| {
                    key.write(reply);
                    value.write(reply);
                });
            }
        }
    }

    fn is_frame2(&self, frame: &Frame2) -> bool {
        match (self, frame) {
            (Node::Simple(text), Frame2::SimpleString(read)) => line(text).as_bytes() == &read[..],
            (Node::Error(text), Frame2::Error(read)) => line(text) == *read,
            (Node::Integer(number), Frame2::Integer(read)) => number == read,
            (Node::Boolean(value), Frame2::Integer(read)) => i64::from(*value) == *read,
            (Node::Bulk(bytes), Frame2::BulkString(read)) => bytes == read,
            (Node::Text(text), Frame2::BulkString(read)) => text.as_bytes() == &read[..],
            (Node::NullBulk | Node::NullArray, Frame2::Null) => true,
            (Node::Array(nodes), Frame2::Array(read)) => {
                nodes.len() == read.len() && nodes.iter().zip(read).all(|(node, frame)| node.is_frame2(frame))
            }
            (Node::Map(pairs), Frame2::Array(read)) => {
                let nodes = pairs.iter().flat_map(|(key, value)| [key, value]);
                2 * pairs.len() == read.len() && nodes.zip(read).all(|(node, frame)| node.is_frame2(frame))
            }
            _ => false,
        }
    }

    fn is_frame3(&self, frame: &Frame3) -> bool {
        match (self, frame) {
            (Node::Simple(text), Frame3::SimpleString { data, .. }) => line(text).as_bytes() == &data[..],
            (Node::Error(text), Frame3::SimpleError { data, .. }) => line(text) == *data,
            (Node::Integer(number), Frame3::Number { data, .. }) => number == data,
            (Node::Boolean(value), Frame3::Boolean { data, .. }) => value == data,
            (Node::Bulk(bytes), Frame3::BlobString { data, .. }) => bytes == data,
            (Node::Text(text), Frame3::VerbatimString { data, .. }) => text.as_bytes() == &data[..],
            (Node::NullBulk | Node::NullArray, Frame3::Null) => true,
            (Node::Array(nodes), Frame3::Array { data, .. }) => {
                nodes.len() == data.len() && nodes.iter().zip(data).all(|(node, frame)| node.is_frame3(frame))
            }
            (Node::Map(pairs), Frame3::Map { data, .. }) => {
                let has = |(key, value): &(Node, Node)| {
                    data.iter().any(|(read, frame)| key.is_frame3(read) && value.is_frame3(frame))
                };
                pairs.len() == data.len() && pairs.iter().all(has)
            }
            _ => false,
        }
    }
}

/// Returns a text in the form in which it is written where it must fit in a line.
fn line(text: &str) -> String {
    text.replace(['\r', '\n'], " ")
}

fn byte_of(data: &mut &[u8]) -> u8 {
    data.split_off_first().copied().unwrap_or(0)
}

fn integer_of(data: &mut &[u8]) -> i64 {
    let bytes = data.split_off(..8.min(data.len())).unwrap_or_default();
    bytes.iter().fold(0, |number, byte| number << 8 | i64::from(*byte))
}

fn bytes_of<'a>(data: &mut &'a [u8]) -> &'a [u8] {
    let len_bytes = usize::from(byte_of(data)).min(data.len());
    data.split_off(..len_bytes).unwrap_or_default()
}

fn text_of(data: &mut &[u8]) -> String {
    String::from_utf8_lossy(bytes_of(data)).into_owned()
}
