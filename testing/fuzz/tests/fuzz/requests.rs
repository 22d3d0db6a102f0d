//! The parser of requests with generated input: the cuts of the input do not matter, and no input makes the parser
//! panic.

use fuzz::parse;
use proptest::collection::vec;
use proptest::prelude::*;
use resp::{Protocol, Reply};

fn encode(requests: &[Vec<Vec<u8>>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut reply = Reply::new(&mut bytes, Protocol::Resp2);
    for request in requests {
        reply.array(request.len());
        request.iter().for_each(|argument| reply.bulk(argument));
    }
    bytes
}

fn requests() -> impl Strategy<Value = Vec<Vec<Vec<u8>>>> {
    vec(vec(vec(any::<u8>(), 0..20), 1..5), 0..8)
}

/// Bytes that resemble the protocol more often than by chance.
fn near_protocol() -> impl Strategy<Value = Vec<u8>> {
    let token = prop_oneof![
        Just(&b"\r\n"[..]),
        Just(&b"*"[..]),
        Just(&b"*2\r\n"[..]),
        Just(&b"*1048577\r\n"[..]),
        Just(&b"$"[..]),
        Just(&b"$3\r\nabc\r\n"[..]),
        Just(&b"$0\r\n"[..]),
        Just(&b"-1"[..]),
        Just(&b"\"a\\x41"[..]),
        Just(&b"'"[..]),
        Just(&b" \x0b\x00"[..]),
        Just(&b"\n"[..]),
    ];
    vec(prop_oneof![3 => token.prop_map(<[u8]>::to_vec), 1 => vec(any::<u8>(), 0..4)], 0..24)
        .prop_map(|tokens| tokens.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn written_values_are_read_back(sent in requests(), piece_bytes in 1usize..50) {
        let (found, error) = parse(encode(&sent).chunks(piece_bytes), usize::MAX);
        prop_assert_eq!((found, error), (sent, None));
    }

    #[test]
    fn cuts_do_not_matter(input in near_protocol(), piece_bytes in 1usize..9, count_max in 1usize..4) {
        let whole = parse(std::iter::once(&input[..]), usize::MAX);
        prop_assert_eq!(parse(input.chunks(piece_bytes), count_max), whole);
    }

    #[test]
    fn any_bytes_are_taken_or_refused(input in vec(any::<u8>(), 0..400)) {
        let whole = parse(std::iter::once(&input[..]), usize::MAX);
        prop_assert_eq!(parse(input.chunks(7), 2), whole);
    }
}
