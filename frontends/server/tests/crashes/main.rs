//! The commands on collections, crashed at every step: each of them is done or not, nothing acknowledged is lost, and
//! the stored items keep the invariants of `docs/format/collections.md`. Broken variants are caught.

mod broken;
mod served;
mod stored;
mod streams;

use pmem_sim::{Model, Sim};
use testkit::{
    Contents, Extent, Objection, OnDisk, Op, Operations, Script, Settings, Subject, Visitor, explore, survives,
};

use broken::{CountForgotten, CountLater, DeadForgotten, DueForgotten, ElementsLater, OwnerForgotten, RowFirst};
use broken::{ScoresForgotten, Sound, StringFirst, Way};
use served::{REGION_BYTES, Served};

/// The part of an operation's first key after which a command follows.
const COMMAND: &[u8] = b"\0";
/// Stands for a command: the background runs.
const SETTLE: &str = "settle";
/// Stands for a command: the store is closed and opened.
const REOPEN: &str = "reopen";

/// One value of each type, and a string.
const SETUP: [&str; 5] = ["SET str v", "HSET h f1 a f2 b", "SADD s a b c", "RPUSH l a b c d", "ZADD z 1 a 2 b 2 c"];

const HASHES: &[&str] = &[
    "HSET h f3 c",
    "HSET h f1 another-value",
    "HSET h f1 d f4 e",
    "HINCRBY h n 5",
    "HDEL h f1",
    "HDEL h f2 f3 f4 n",
    "HSET h g 1",
    "DEL h",
    "SADD h m",
    SETTLE,
    "SREM h m",
    SETTLE,
];

const SETS: &[&str] = &[
    "SADD s d",
    "SADD s a e",
    "SREM s b",
    "SMOVE s t a",
    "SUNIONSTORE u s t",
    "SMOVE s t c",
    "SPOP t 10",
    REOPEN,
    "SREM s d e",
    "SINTERSTORE u u s",
    SETTLE,
];

const LISTS: &[&str] = &[
    "LPUSH l z",
    "RPUSH l y x",
    "LINSERT l BEFORE b q",
    "LREM l 1 c",
    "LSET l 0 w",
    "LTRIM l 1 -2",
    "LMOVE l m LEFT RIGHT",
    "LMOVE l m RIGHT LEFT",
    "LMOVE m m LEFT RIGHT",
    "RPOP m",
    "LPOP l 9",
    "LPOP m",
    SETTLE,
];

const SORTED_SETS: &[&str] = &[
    "ZADD z 3 d",
    "ZADD z 5 a",
    "ZINCRBY z 2 b",
    "ZREM z a",
    "ZADD z -1 e -1 f",
    "ZPOPMIN z",
    "ZRANGESTORE y z 0 1",
    REOPEN,
    "ZREMRANGEBYRANK z 0 -1",
    "ZREM y b c d e f",
    SETTLE,
];

const STREAMS: &[&str] = &[
    "XADD x 1 f a",
    "XADD x 2-1 g b h c",
    "XGROUP CREATE x group 0",
    "XREADGROUP GROUP group one COUNT 1 STREAMS x >",
    "XREADGROUP GROUP group two STREAMS x >",
    "XCLAIM x group one 0 2-1",
    "XADD x MAXLEN 1 3 f d",
    "XACK x group 1",
    "XDEL x 3",
    REOPEN,
    "COPY x y",
    "XGROUP DELCONSUMER x group one",
    "XGROUP DESTROY y group",
    "XGROUP CREATE w group $ MKSTREAM",
    "XSETID x 9",
    "MULTI\r\nXADD w 4 f v\r\nXREADGROUP GROUP group one STREAMS w >\r\nXADD x 10 f v\r\nEXEC",
    "DEL x",
    SETTLE,
    "XTRIM w MAXLEN 0",
    "DEL w",
    "DEL y",
    SETTLE,
];

const KEYS: &[&str] = &[
    "RENAME h i",
    "COPY i j",
    "SET i x",
    "COPY j str REPLACE",
    "RENAME s z",
    "MOVE z 1",
    SETTLE,
    "SWAPDB 0 1",
    "SWAPDB 0 1",
    "SELECT 1\r\nFLUSHDB",
    SETTLE,
    // One group.
    "HSET j p 1\r\nSADD m q\r\nHDEL j p f1\r\nZADD o 1 x\r\nLPUSH l y\r\nHSET j f9 9\r\nSREM m q\r\nSADD s q",
    "MULTI\r\nHSET j f 9\r\nSADD n q\r\nLPUSH l k\r\nDEL str\r\nEXEC",
    "EVAL \"redis.call('hset', 'j', 'e', 1) redis.call('rpop', 'l') redis.call('set', 'n', 2)\" 0",
    REOPEN,
    "FLUSHALL",
    SETTLE,
];

const EXPIRY: &[&str] = &[
    "PEXPIREAT h 4000000000000",
    "HSET h f3 c",
    "PEXPIREAT s 4000000000001",
    "PERSIST s",
    "PEXPIREAT s 4000000000003",
    "RENAME h i",
    "COPY i j",
    "AT 4000000000002",
    "SADD i new",
    SETTLE,
    "AT 4000000000004",
    SETTLE,
    "ZADD s 1 new",
    REOPEN,
];

type OnSim<W = Sound> = Served<Sim, W>;

fn settings() -> Settings {
    Settings {
        region_bytes: REGION_BYTES,
        visitors: vec![Visitor::Nobody],
        images_per_step_max: 4,
        images_per_op_max: 30,
        nested_images_max: 1,
        ..Settings::default()
    }
}

fn contents_of(store: &OnSim) -> Contents {
    let mut contents = Contents::new();
    store.for_each(&mut |key, value| _ = contents.insert(key.to_vec(), value.to_vec())).expect("it is readable");
    contents
}

/// Returns a script of these commands. Each is an atomic change from the contents before it to those after it, as a
/// store finds them that does not crash.
fn script(number: u64, explored: &[&str]) -> Script {
    <OnSim>::set_time(0);
    let sim = Sim::new(REGION_BYTES, Model::Line);
    let mut store = Some(<OnSim>::format(sim.clone()).expect("it is formatted"));
    let mut op_of = |command: &&str| {
        let before = contents_of(store.as_ref().expect("it is open"));
        match *command {
            SETTLE => store.as_ref().expect("it is open").settle().expect("it settles"),
            REOPEN => {
                store.take().expect("it is open").close().expect("it closes");
                store = Some(<OnSim>::open(sim.clone()).expect("it opens"));
            }
            command => {
                let done = store.as_ref().expect("it is open").batch(&[(&name(command), None)]);
                done.unwrap_or_else(|failure| panic!("{command}: {failure}"));
            }
        }
        let after = contents_of(store.as_ref().expect("it is open"));
        let gone = before.keys().filter(|key| !after.contains_key(*key)).map(|key| (key.clone(), None));
        let put = after.iter().filter(|(key, value)| before.get(*key) != Some(value));
        let changes: Vec<_> = gone.chain(put.map(|(key, value)| (key.clone(), Some(value.clone())))).collect();
        match *command {
            SETTLE | REOPEN => {
                assert!(changes.is_empty(), "{command} changes {changes:?}");
                if *command == SETTLE { Op::Settle } else { Op::Reopen }
            }
            command => {
                assert!(!changes.is_empty(), "{command} changes nothing");
                Op::Batch([vec![(name(command), None)], changes].concat())
            }
        }
    };
    let setup: Vec<Op> = SETUP.iter().map(&mut op_of).collect();
    let explored: Vec<Op> = explored.iter().map(&mut op_of).collect();
    Script::after(number, setup, explored)
}

/// Returns the key by which an operation names its command.
fn name(command: &str) -> Vec<u8> {
    [COMMAND, command.as_bytes()].concat()
}

fn scripts() -> Vec<Script> {
    let all = [HASHES, SETS, LISTS, SORTED_SETS, STREAMS, KEYS, EXPIRY];
    (1..).zip(all).map(|(number, commands)| script(number, commands)).collect()
}

#[test]
fn commands_survive_in_memory() {
    let counts = survives::<OnSim>(&scripts(), &settings());
    assert!(counts.reach(1000, 500, 0), "{counts:?}");
}

#[test]
fn commands_survive_on_a_journal() {
    let settings = Settings {
        visitors: vec![Visitor::Nobody],
        images_per_step_max: 4,
        images_per_op_max: 12,
        nested_images_max: 1,
        ..Settings::on_disk(REGION_BYTES)
    };
    let counts = survives::<Served<OnDisk, Sound>>(&scripts(), &settings);
    assert!(counts.reach(300, 100, 0), "{counts:?}");
}

/// Asserts that an exploration objects to a broken way, and not for want of images.
fn is_caught<W: Way>(commands: &[&str], expected: &str) {
    // A slice catches most broken ways.
    for extent in [Extent::Slice, Extent::Whole] {
        match explore::<OnSim<W>>(&[script(1, commands)], &Settings { extent, ..settings() }) {
            Ok(_) => {}
            Err(Objection::Violation(violation)) => {
                let text = violation.to_string();
                assert!(text.contains(expected), "{}: {text}", std::any::type_name::<W>());
                return;
            }
            Err(objection) => panic!("{}: {objection}", std::any::type_name::<W>()),
        }
    }
    panic!("{} is not caught", std::any::type_name::<W>());
}

#[test]
fn broken_ways_are_caught() {
    is_caught::<CountLater>(HASHES, "elements");
    is_caught::<ElementsLater>(LISTS, "is lost");
    is_caught::<CountForgotten>(SETS, "elements");
    is_caught::<ScoresForgotten>(SORTED_SETS, "by score");
    is_caught::<OwnerForgotten>(STREAMS, "illegal contents");
    is_caught::<DeadForgotten>(KEYS, "belong to nothing");
    is_caught::<DueForgotten>(EXPIRY, "has no row");
    is_caught::<StringFirst>(KEYS, "should not be");
    is_caught::<RowFirst>(HASHES, "belong to nothing");
}
