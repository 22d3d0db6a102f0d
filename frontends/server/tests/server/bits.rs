//! Single bits, and integers of any width.

use crate::common::{TestServer, Value, array, bulk, error, int, ok};

#[test]
fn single_bits() {
    let server = TestServer::start();
    let mut client = server.client();
    client.converse([
        ("SETBIT k 7 1", int(0)),
        ("SETBIT k 7 1", int(1)),
        ("GET k", bulk("\x01")),
        ("GETBIT k 7", int(1)),
        ("GETBIT k 100", int(0)),
        ("SETBIT k -1 1", error("ERR bit offset is not an integer or out of range")),
        ("SETBIT k 4294967296 1", error("ERR bit offset is not an integer or out of range")),
        ("SETBIT k 1 2", error("ERR bit is not an integer or out of range")),
        ("SET s foobar", ok()),
        ("BITCOUNT s", int(26)),
        ("BITCOUNT s 1 1", int(6)),
        ("BITCOUNT s 5 30 BIT", int(17)),
        ("BITCOUNT s 1", error("ERR syntax error")),
        ("BITPOS s 1", int(1)),
        ("BITPOS s 0 100", int(-1)),
        ("BITPOS absent 0", int(0)),
        ("BITPOS s 2", error("ERR The bit argument must be 1 or 0.")),
    ]);
}

#[test]
fn operations_on_several_values() {
    let server = TestServer::start();
    let mut client = server.client();
    client.converse([
        ("MSET a abc b ab", ok()),
        ("BITOP AND d a b", int(3)),
        ("GET d", bulk("ab\0")),
        ("BITOP XOR d a a", int(3)),
        ("GET d", bulk("\0\0\0")),
        ("BITOP NOT d b", int(2)),
        ("BITCOUNT d", int(10)),
        ("BITOP OR d absent", int(0)),
        ("EXISTS d", int(0)),
        ("BITOP NOT d a b", error("ERR BITOP NOT must be called with a single source key.")),
        ("BITOP NAND d a b", error("ERR syntax error")),
    ]);
}

#[test]
fn integers_of_any_width() {
    let server = TestServer::start();
    let mut client = server.client();
    client.converse([
        ("BITFIELD k SET i8 0 -100 GET u8 0", array([int(0), int(156)])),
        ("BITFIELD k INCRBY i8 0 -100", array([int(56)])),
        ("BITFIELD k OVERFLOW SAT INCRBY u8 0 250", array([int(255)])),
        ("BITFIELD k OVERFLOW FAIL INCRBY u8 0 1", array([Value::Null])),
        ("BITFIELD k SET i64 #1 -1 GET i64 #1", array([int(0), int(-1)])),
        ("BITFIELD sat OVERFLOW SAT SET u8 0 -1 GET u8 0", array([int(0), int(255)])),
        ("BITFIELD sat OVERFLOW SAT SET u63 64 -9223372036854775808 GET u63 64", array([int(0), int(i64::MAX)])),
        ("BITFIELD sat OVERFLOW SAT SET i8 0 -1000 GET i8 0", array([int(-1), int(-128)])),
        ("BITFIELD sat OVERFLOW SAT SET i8 0 -9223372036854775680 GET i8 0", array([int(-128), int(-128)])),
        ("BITFIELD sat OVERFLOW SAT SET i8 0 -9223372036854775681 GET i8 0", array([int(-128), int(127)])),
        ("BITFIELD sat OVERFLOW SAT SET i64 64 -9223372036854775808 GET i64 64", array([int(-2), int(i64::MIN)])),
        (
            "BITFIELD sat OVERFLOW FAIL SET u8 0 -1 OVERFLOW WRAP SET u8 0 -2 GET u8 0",
            array([Value::Null, int(127), int(254)]),
        ),
        ("BITFIELD_RO k GET u4 4", array([int(15)])),
        ("BITFIELD_RO k SET u4 4 1", error("ERR BITFIELD_RO only supports the GET subcommand")),
        ("BITFIELD absent GET u8 0", array([int(0)])),
        ("EXISTS absent", int(0)),
        (
            "BITFIELD k GET u64 0",
            error("ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is."),
        ),
    ]);
}

#[test]
fn oversized_bit_range_is_refused_unread() {
    let server = TestServer::start();
    server.client().converse([
        ("SET k v", ok()),
        ("BITCOUNT k 0 x", error("ERR value is not an integer or out of range")),
        ("BITCOUNT k 0 x BIT more", error("ERR syntax error")),
        ("BITPOS k 1 -3 -100", int(1)),
        ("BITPOS k 1 -1 -2", int(1)),
        ("BITCOUNT k -3 -100", int(0)),
        ("BITFIELD big GET u8 4294967295", array([int(0)])),
        ("BITFIELD big GET u8 4294967296", error("ERR bit offset is not an integer or out of range")),
    ]);
}
