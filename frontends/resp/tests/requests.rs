//! The parser on complete inputs: requests, errors and limits.

use resp::{Limits, Parser, Protocol, ProtocolError, Reply, Requests};

fn parse(input: &[u8]) -> (Vec<Vec<Vec<u8>>>, Result<usize, ProtocolError>) {
    let mut requests = Requests::default();
    let outcome = Parser::new(Limits::default()).parse(input, &mut requests, usize::MAX);
    (owned(&requests, input), outcome)
}

fn owned(requests: &Requests, input: &[u8]) -> Vec<Vec<Vec<u8>>> {
    let request = |index| {
        let request = requests.get(index, input);
        std::iter::once(request.name()).chain(request.arguments()).map(<[u8]>::to_vec).collect()
    };
    (0..requests.len()).map(request).collect()
}

fn error_of(input: &[u8]) -> String {
    parse(input).1.expect_err("this input is malformed").to_string()
}

#[test]
fn multibulk_and_inline_mix() {
    let input = b"*2\r\n$3\r\nGET\r\n$1\r\na\r\nPING 'x y'\r\n\r\n\n*0\r\n*-1\r\n*1\r\n$0\r\n\r\nget b\n*1\r\n$4\r\nPI";
    let (requests, consumed) = parse(input);
    let expected: Vec<Vec<&[u8]>> = vec![vec![b"GET", b"a"], vec![b"PING", b"x y"], vec![b""], vec![b"get", b"b"]];
    assert_eq!(requests, expected);
    assert_eq!(consumed, Ok(input.len() - "*1\r\n$4\r\nPI".len()));
}

#[test]
fn errors_in_the_words_of_redis() {
    assert_eq!(error_of(b"*x\r\n"), "Protocol error: invalid multibulk length");
    assert_eq!(error_of(b"*1048577\r\n"), "Protocol error: invalid multibulk length");
    assert_eq!(error_of(b"*1\r\n:3\r\n"), "Protocol error: expected '$', got ':'");
    assert_eq!(error_of(b"*1\r\n\r\n"), "Protocol error: expected '$', got '\r'");
    assert_eq!(error_of(b"*1\r\n$-1\r\n"), "Protocol error: invalid bulk length");
    assert_eq!(error_of(b"*1\r\n$1x\r\n"), "Protocol error: invalid bulk length");
    assert_eq!(error_of(b"*1\r\n$536870913\r\n"), "Protocol error: invalid bulk length");
    assert_eq!(error_of(b"set \"a\r\n"), "Protocol error: unbalanced quotes in request");
}

#[test]
fn lines_without_end() {
    let endless = |start: &str| [start.as_bytes(), &vec![b'1'; Limits::LINE_BYTES_MAX + 1]].concat();
    assert_eq!(error_of(&endless("")), "Protocol error: too big inline request");
    assert_eq!(error_of(&endless("*")), "Protocol error: too big mbulk count string");
    assert_eq!(error_of(&endless("*1\r\n$")), "Protocol error: too big bulk count string");
}

#[test]
fn an_inline_command_may_fill_the_limit() {
    let word = vec![b'a'; Limits::LINE_BYTES_MAX];
    let (requests, _) = parse(&[&word[..], b"\n"].concat());
    assert_eq!(requests, [[word]]);
}

#[test]
fn requests_before_an_error_are_given_out() {
    let (requests, outcome) = parse(b"PING\r\n*1\r\n!");
    assert_eq!((requests.len(), outcome), (1, Ok(6)));
    let (requests, outcome) = parse(b"PING\r\n*1\r\n!\r\n");
    assert_eq!((requests.len(), outcome), (1, Err(ProtocolError::ExpectedBulk { found: b'!' })));
}

#[test]
fn the_bulk_limit_is_configured_and_capped() {
    assert_eq!(Limits::with_bulk_bytes_max(usize::MAX).bulk_bytes_max(), Limits::BULK_BYTES_MAX);
    let mut parser = Parser::new(Limits::with_bulk_bytes_max(3));
    let outcome = parser.parse(b"*1\r\n$4\r\n", &mut Requests::default(), 1);
    assert_eq!(outcome, Err(ProtocolError::InvalidBulkLength));
}

#[test]
fn oversized_request_is_refused_when_announced() {
    let mut parser = Parser::new(Limits::with_bulk_bytes_max(Limits::BULK_BYTES_MAX));
    let announced = format!("*2\r\n$2097152\r\n{}\r\n$1073741824\r\n", "v".repeat(2 << 20));
    let outcome = parser.parse(announced.as_bytes(), &mut Requests::default(), 1);
    assert_eq!(outcome, Err(ProtocolError::TooBigRequest));
}

#[test]
fn long_argument_says_how_much_it_wants() {
    let mut parser = Parser::new(Limits::default());
    let input = b"*1\r\n$1000\r\nabc";
    assert_eq!(parser.parse(input, &mut Requests::default(), 1), Ok(0));
    assert_eq!(parser.wanted_bytes(), "*1\r\n$1000\r\n".len() + 1000 + 2);
}

#[test]
fn at_most_so_many_requests_are_taken() {
    let (mut parser, mut requests) = (Parser::new(Limits::default()), Requests::default());
    assert_eq!(parser.parse(b"a\nb\nc\n", &mut requests, 2), Ok(4));
    requests.clear();
    assert_eq!(parser.parse(b"c\n", &mut requests, 2), Ok(2));
    assert_eq!(owned(&requests, b"c\n"), [[b"c"]]);
}

#[test]
fn the_most_arguments() {
    let mut input = Vec::new();
    let mut reply = Reply::new(&mut input, Protocol::Resp2);
    reply.array(Limits::ARGUMENT_COUNT_MAX);
    (0..Limits::ARGUMENT_COUNT_MAX).for_each(|_| reply.bulk(b"x"));
    let mut requests = Requests::default();
    assert_eq!(Parser::new(Limits::default()).parse(&input, &mut requests, 1), Ok(input.len()));
    assert_eq!(requests.get(0, &input).len(), Limits::ARGUMENT_COUNT_MAX);
}
