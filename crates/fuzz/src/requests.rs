//! The parser of requests.

use resp::{Limits, Parser, ProtocolError, Requests};

/// Longest argument that may be announced, so that the limit is met too.
const BULK_BYTES_MAX: usize = 300;

/// Memory of the parsed requests for each byte of input: an empty argument takes four bytes and is kept in eight, a
/// request of one letter takes two and is kept in 40, and a vector may have twice the room it needs.
const BYTES_PER_BYTE_MAX: usize = 80;

/// Room that a vector takes for its first element, and more.
const BYTES_MIN: usize = 1024;

/// Requests, each with its name and arguments, and why the rest of a connection's bytes is refused, if it is.
pub type Parsed = (Vec<Vec<Vec<u8>>>, Option<ProtocolError>);

/// How the input is cut does not matter, nor how many requests are taken at a time; and memory is bounded by its length.
/// The first byte says how to cut the others.
pub fn requests(data: &[u8]) {
    let Some((cut, input)) = data.split_first() else { return };
    let whole = parse([input].into_iter(), usize::MAX);
    let piece_bytes = usize::from(cut >> 2) + 1;
    let count_max = usize::from(cut & 3) + 1;
    assert_eq!(parse(input.chunks(piece_bytes), count_max), whole);
}

/// What a connection reads from `pieces`, taken as they arrive, at most `count_max` requests at a time.
///
/// # Panics
/// If the parsed requests take more memory than is right for their bytes.
pub fn parse<'a>(pieces: impl Iterator<Item = &'a [u8]>, count_max: usize) -> Parsed {
    let mut parser = Parser::new(Limits::with_bulk_bytes_max(BULK_BYTES_MAX));
    let (mut input, mut found) = (Vec::new(), Vec::new());
    for piece in pieces {
        input.extend_from_slice(piece);
        loop {
            let mut requests = Requests::default();
            let outcome = parser.parse(&input, &mut requests, count_max);
            assert!(requests.capacity_bytes() <= BYTES_MIN + BYTES_PER_BYTE_MAX * input.len());
            found.extend((0..requests.len()).map(|index| owned(&requests, index, &input)));
            match outcome {
                Err(error) => return (found, Some(error)),
                Ok(consumed) => input.drain(..consumed),
            };
            if requests.len() < count_max {
                break;
            }
        }
    }
    (found, None)
}

fn owned(requests: &Requests, index: usize, input: &[u8]) -> Vec<Vec<u8>> {
    let request = requests.get(index, input);
    std::iter::once(request.name()).chain(request.arguments()).map(<[u8]>::to_vec).collect()
}
