//! Scripts that call commands on all types: the server survives each of them, a script is one step, and the collections
//! that it leaves agree with their counts. Input is read as a script, so that nearly every input is a valid one.

use std::cell::RefCell;
use std::fmt::Write;

use redis_protocol::resp2::types::OwnedFrame;

use crate::served::Served;

/// Excludes commands by which one input would affect the next or be slow, and those that block other clients.
const RULES: &str = "-debug -config|set -acl|setuser -acl|deluser -shutdown -client|pause -script -function -save";

/// A script has at most this many statements.
const STATEMENT_COUNT_MAX: usize = 40;
/// The repetitions of a loop; loops are nested at most twice.
const LOOP_COUNTS: [usize; 4] = [2, 3, 5, 20];
const DEPTH_MAX: usize = 2;
/// The memory that a value of a script may take: well above that of any value here.
const RESIDENT_BYTES_MAX: u64 = 2 << 30;

const KEYS: [&str; 6] = ["KEYS[1]", "KEYS[2]", "'h'", "'s'", "'l'", "'z'"];
const WORDS: [&str; 24] = [
    "ARGV[1]",
    "ARGV[2]",
    "'a'",
    "'b'",
    "'0'",
    "'1'",
    "-1",
    "2.5",
    "'(1'",
    "'-inf'",
    "'+inf'",
    "'[a'",
    "'-'",
    "'+'",
    "'WITHSCORES'",
    "'COUNT'",
    "'LEFT'",
    "'RIGHT'",
    "'BEFORE'",
    "'NX'",
    "'GET'",
    "tostring(r[#r])",
    "i",
    "9e18",
];
/// Commands on every type; each is followed by arguments of any kind.
const COMMANDS: [&str; 56] = [
    "get",
    "set",
    "incr",
    "append",
    "setrange",
    "bitfield",
    "del",
    "type",
    "expire",
    "pexpire",
    "persist",
    "rename",
    "copy",
    "exists",
    "object",
    "hset",
    "hget",
    "hdel",
    "hincrby",
    "hincrbyfloat",
    "hgetall",
    "hrandfield",
    "hscan",
    "hlen",
    "sadd",
    "srem",
    "smove",
    "spop",
    "smembers",
    "sinterstore",
    "sunion",
    "sdiffstore",
    "sscan",
    "scard",
    "lpush",
    "rpush",
    "lpop",
    "rpop",
    "lmove",
    "linsert",
    "lrem",
    "ltrim",
    "lset",
    "lrange",
    "lpos",
    "zadd",
    "zrem",
    "zincrby",
    "zrange",
    "zrangestore",
    "zpopmin",
    "zunionstore",
    "zinterstore",
    "zscan",
    "zcard",
    "lmpop",
];

thread_local! {
    static SERVED: RefCell<Served> = RefCell::new(Served::new(RULES));
}

/// Reads choices from bytes; without bytes, each is the first one.
struct Choices<'a>(std::slice::Iter<'a, u8>);

impl Choices<'_> {
    fn number(&mut self, below: usize) -> usize {
        self.0.next().map_or(0, |byte| usize::from(*byte) % below)
    }

    fn one_of<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.number(values.len())]
    }
}

/// Returns a script of these choices.
fn script_of(data: &[u8]) -> String {
    let (mut choices, mut text) = (Choices(data.iter()), "local r, i = {}, 0 ".to_owned());
    let mut depth = 0;
    for _ in 0..STATEMENT_COUNT_MAX {
        if choices.0.as_slice().is_empty() {
            break;
        }
        match choices.number(16) {
            0 if depth < DEPTH_MAX => {
                depth += 1;
                let _ = write!(text, "for i = 1, {} do ", choices.one_of(&LOOP_COUNTS));
            }
            1 if depth > 0 => {
                depth -= 1;
                text.push_str("end ");
            }
            2 => {
                let _ = write!(text, "if #r > {} then return r[#r] end ", choices.number(200));
            }
            3 => text.push_str("if r[#r] == false then error(r[#r - 1]) end "),
            4 => text.push_str("r[#r + 1] = cjson.encode({r[#r], #r}) "),
            5 => text.push_str("r[#r + 1] = cmsgpack.pack(r[#r]) "),
            6 => {
                let _ = write!(text, "r[#r + 1] = ('x'):rep({}) ", 1 << choices.number(20));
            }
            7 => text.push_str("r = {r[#r]} "),
            8 => call(&mut text, "call", &mut choices),
            _ => call(&mut text, "pcall", &mut choices),
        }
    }
    text.push_str(&"end ".repeat(depth));
    text.push_str("return r");
    text
}

fn call(text: &mut String, how: &str, choices: &mut Choices<'_>) {
    let _ = write!(text, "r[#r + 1] = redis.{how}('{}', {}", choices.one_of(&COMMANDS), choices.one_of(&KEYS));
    for _ in 0..choices.number(6) {
        let argument = if choices.number(4) == 0 { choices.one_of(&KEYS) } else { choices.one_of(&WORDS) };
        let _ = write!(text, ", {argument}");
    }
    text.push_str(") ");
}

/// A script gets one reply, whatever it calls; afterwards each collection has as many elements as it counts.
pub fn script_calls(data: &[u8]) {
    let script = script_of(data);
    SERVED.with_borrow_mut(|served| {
        served.call(&[b"EVAL", script.as_bytes(), b"2", b"k", b"other", b"v", b"12"]);
        let OwnedFrame::Array(keys) = served.call(&[b"KEYS", b"*"]) else { panic!("no list of keys") };
        for key in keys {
            let OwnedFrame::BulkString(key) = key else { panic!("no key") };
            agrees(served, &key).unwrap_or_else(|what| panic!("{}: {what}, after {script}", key.escape_ascii()));
            served.call(&[b"DEL", &key]);
        }
        served.call(&[b"SLOWLOG", b"RESET"]);
    });
    assert!(resident_bytes() < RESIDENT_BYTES_MAX, "the process has too much memory");
}

/// Checks that a key's elements are as many as it counts.
fn agrees(served: &mut Served, key: &[u8]) -> Result<(), String> {
    let OwnedFrame::SimpleString(kind) = served.call(&[b"TYPE", key]) else { panic!("no type") };
    let (count, all): (&[u8], Vec<&[u8]>) = match &kind[..] {
        b"hash" => (b"HLEN", vec![b"HKEYS", key]),
        b"set" => (b"SCARD", vec![b"SMEMBERS", key]),
        b"list" => (b"LLEN", vec![b"LRANGE", key, b"0", b"-1"]),
        b"zset" => (b"ZCARD", vec![b"ZRANGE", key, b"0", b"-1"]),
        _ => return Ok(()),
    };
    // A key may expire between the two.
    let (counted, elements) = (served.call(&[count, key]), served.call(&all));
    match (counted, elements) {
        (OwnedFrame::Integer(counted), OwnedFrame::Array(elements)) if counted == elements.len() as i64 => Ok(()),
        _ if served.call(&[b"EXISTS", key]) == OwnedFrame::Integer(0) => Ok(()),
        (counted, elements) => Err(format!("{counted:?} elements are counted, and there are {elements:?}")),
    }
}

/// Returns the memory of this process.
fn resident_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("it is readable");
    let pages: u64 = statm.split(' ').nth(1).and_then(|pages| pages.parse().ok()).expect("a number of pages");
    pages * 4096
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Otherwise the target would test the parser of Lua.
    #[test]
    fn scripts_call_commands() {
        let mut served = Served::new(RULES);
        let data: Vec<u8> = (0..200).map(|byte: u8| byte.wrapping_mul(37)).collect();
        let script = script_of(&data);
        assert!(script.matches("redis.").count() > 10, "{script}");
        assert_eq!(script_of(b""), "local r, i = {}, 0 return r");
        let reply = served.call(&[b"EVAL", script.as_bytes(), b"2", b"k", b"other", b"v", b"12"]);
        assert!(!format!("{reply:?}").contains("compiling"), "{reply:?}");
    }
}
