//! The parser of requests.

use resp::{Limits, Parser, ProtocolError, Requests};

/// The longest argument that may be announced, so that inputs reach the limit.
const BULK_BYTES_MAX: usize = 300;

/// Memory of the parsed requests per byte of input: an empty argument has four bytes and is stored in eight, a request
/// of one byte has two and is stored in 40, and a vector may have twice the capacity that it needs.
const BYTES_PER_BYTE_MAX: usize = 80;

/// The capacity that a vector allocates for its first element, and more.
const BYTES_MIN: usize = 1024;

/// Requests, each with its name and arguments, and the error at which the rest of a connection's bytes is refused, if
/// any.
pub type Parsed = (Vec<Vec<Vec<u8>>>, Option<ProtocolError>);

/// The cuts of the input and the number of requests parsed at a time do not matter, and memory is bounded by the
/// input's length. The first byte determines the cuts of the others.
pub fn requests(data: &[u8]) {
    let Some((cut, input)) = data.split_first() else { return };
    let whole = parse([input].into_iter(), usize::MAX);
    let piece_bytes = usize::from(cut >> 2) + 1;
    let count_max = usize::from(cut & 3) + 1;
    assert_eq!(parse(input.chunks(piece_bytes), count_max), whole);
}

/// Parses the requests of a connection that receives `pieces`, at most `count_max` requests at a time.
///
/// # Panics
/// If the parsed requests use more memory than their bytes justify.
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
