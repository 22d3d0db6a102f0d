//! Encoding and decoding of PDUs, and invalid PDUs.

use nvme::{
    Command, Completion, Data, Digests, Fatal, FatalCause, Framing, InitialRequest, InitialResponse, Pdu, Ready, Sgl,
    Side, Status, Writer,
};
use proptest::collection::vec;
use proptest::prelude::*;
use ref_cast::RefCast;

const CAPSULE_BYTES_MAX: usize = 200;
const DATA_BYTES_MAX: usize = 300;

fn framing(side: Side, digests: Digests) -> Framing {
    Framing { side, digests, capsule_bytes_max: CAPSULE_BYTES_MAX, data_bytes_max: DATA_BYTES_MAX }
}

fn writer(reader: Side, digests: Digests, alignment: u8) -> Writer {
    Writer { reader, digests, alignment }
}

fn digests() -> impl Strategy<Value = Digests> {
    (any::<bool>(), any::<bool>()).prop_map(|(header, data)| Digests { header, data })
}

/// A PDU with its data, and the side that reads it.
#[derive(Clone, Debug)]
enum Sent {
    Request(InitialRequest),
    Response(InitialResponse),
    Command([u8; 64], Vec<u8>),
    Completion(Completion),
    Data { to: Side, id: u16, tag: u16, offset: u32, is_last: bool, is_success: bool, bytes: Vec<u8> },
    Ready(Ready),
    Terminate(Side, Fatal),
}

fn side() -> impl Strategy<Value = Side> {
    prop_oneof![Just(Side::Host), Just(Side::Controller)]
}

fn sent() -> impl Strategy<Value = Sent> {
    let data = (side(), any::<(u16, u16, u32, bool, bool)>(), vec(any::<u8>(), 1..=DATA_BYTES_MAX));
    prop_oneof![
        (0..32u8, digests(), any::<u32>()).prop_map(|(alignment, digests, ready_count_max)| {
            Sent::Request(InitialRequest { version: 0, alignment, digests, ready_count_max })
        }),
        (0..32u8, digests(), any::<u32>()).prop_map(|(alignment, digests, data_bytes_max)| {
            Sent::Response(InitialResponse { version: 0, alignment, digests, data_bytes_max })
        }),
        (vec(any::<u8>(), 64), vec(any::<u8>(), 0..=CAPSULE_BYTES_MAX))
            .prop_map(|(entry, data)| Sent::Command(entry.try_into().expect("64 bytes"), data)),
        any::<(u64, u16, u16, u16)>().prop_map(|(result, queue_head, id, status)| {
            Sent::Completion(Completion { result, queue_head, id, status: Status::from_field(status) })
        }),
        data.prop_map(|(to, (id, tag, offset, is_last, is_success), bytes)| {
            Sent::Data { to, id, tag, offset, is_last, is_success, bytes }
        }),
        any::<(u16, u16, u32, u32)>().prop_map(|(id, tag, offset, len_bytes)| Sent::Ready(Ready {
            id,
            tag,
            offset,
            len_bytes
        })),
        (side(), any::<u32>(), vec(any::<u8>(), 0..200)).prop_map(|(to, information, header)| {
            Sent::Terminate(to, Fatal::new(FatalCause::InvalidHeader, information, &header))
        }),
    ]
}

impl Sent {
    fn reader(&self) -> Side {
        match self {
            Sent::Request(_) | Sent::Command(..) => Side::Controller,
            Sent::Response(_) | Sent::Completion(_) | Sent::Ready(_) => Side::Host,
            Sent::Data { to, .. } | Sent::Terminate(to, _) => *to,
        }
    }

    fn write(&self, writer: Writer, out: &mut Vec<u8>) {
        match self {
            Sent::Request(request) => writer.initial_request(out, request),
            Sent::Response(response) => writer.initial_response(out, response),
            Sent::Command(entry, data) => writer.command(out, &Command(*entry), data),
            Sent::Completion(completion) => writer.completion(out, completion),
            Sent::Ready(ready) => writer.ready(out, ready),
            Sent::Terminate(_, fatal) => writer.terminate(out, fatal),
            Sent::Data { .. } => match self.pdu() {
                Pdu::Data(data) => writer.data(out, &data),
                other => panic!("{other:?}"),
            },
        }
    }

    fn pdu(&self) -> Pdu<'_> {
        match self {
            Sent::Request(request) => Pdu::InitialRequest(*request),
            Sent::Response(response) => Pdu::InitialResponse(*response),
            Sent::Command(entry, data) => Pdu::Command(Command::ref_cast(entry), data),
            Sent::Completion(completion) => Pdu::Completion(*completion),
            Sent::Ready(ready) => Pdu::Ready(*ready),
            Sent::Terminate(_, fatal) => Pdu::Terminate { cause: fatal.cause as u16, information: fatal.information },
            Sent::Data { id, tag, offset, is_last, is_success, bytes, .. } => Pdu::Data(Data {
                id: *id,
                tag: *tag,
                offset: *offset,
                is_last: *is_last,
                is_success: *is_success,
                bytes,
            }),
        }
    }
}

/// Reads exactly one PDU byte by byte: nothing before the last byte, then all of it.
fn read_slowly(framing: Framing, bytes: &[u8]) -> Result<Pdu<'_>, Fatal> {
    for len in 0..bytes.len() {
        assert_eq!(framing.next(&bytes[..len])?, None);
    }
    let (pdu, len) = framing.next(bytes)?.expect("it is whole");
    assert_eq!(len, bytes.len());
    Ok(pdu)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn written_values_are_read_back(sent in sent(), digests in digests(), alignment in 0..32u8) {
        let mut bytes = Vec::new();
        sent.write(writer(sent.reader(), digests, alignment), &mut bytes);
        prop_assert!(bytes.len() <= framing(sent.reader(), digests).len_bytes_max());
        prop_assert_eq!(read_slowly(framing(sent.reader(), digests), &bytes), Ok(sent.pdu()));
    }

    #[test]
    fn pdus_of_other_side_are_refused(sent in sent(), digests in digests()) {
        let mut bytes = Vec::new();
        sent.write(writer(sent.reader(), digests, 0), &mut bytes);
        let other = if sent.reader() == Side::Host { Side::Controller } else { Side::Host };
        let refused = framing(other, digests).next(&bytes).expect_err("it goes the other way");
        prop_assert_eq!((refused.cause, refused.information), (FatalCause::InvalidHeader, 0));
    }

    #[test]
    fn digests_notice_bit_flips(entry in vec(any::<u8>(), 64), data in vec(any::<u8>(), 1..100), at in any::<prop::sample::Index>(), bit in 0..8u8) {
        let digests = Digests { header: true, data: true };
        let mut bytes = Vec::new();
        writer(Side::Controller, digests, 0).command(&mut bytes, &Command(entry.try_into().expect("64 bytes")), &data);
        let at = at.index(bytes.len());
        bytes[at] ^= 1 << bit;
        // A larger length makes it wait for more data, which arrives or does not.
        bytes.resize(bytes.len() + 1024, 0);
        let read = framing(Side::Controller, digests).next(&bytes);
        let is_noticed = matches!(read, Err(_) | Ok(Some((Pdu::CorruptCommand(_), _))));
        prop_assert!(is_noticed, "bit {} of byte {}: {:?}", bit, at, read);
    }

    #[test]
    fn any_bytes_are_read_or_refused(side in side(), digests in digests(), input in vec(any::<u8>(), 0..600)) {
        read_all(framing(side, digests), &input);
    }

    #[test]
    fn nearly_right_bytes_are_read_or_refused(sent in vec(sent(), 1..4), digests in digests(), side in side(), hits in vec((any::<prop::sample::Index>(), any::<u8>()), 0..4)) {
        let mut bytes = Vec::new();
        sent.iter().for_each(|sent| sent.write(writer(sent.reader(), digests, 0), &mut bytes));
        for (at, value) in hits {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        read_all(framing(side, digests), &bytes);
    }
}

/// Reads until nothing more can be read, which must terminate.
fn read_all(framing: Framing, mut input: &[u8]) {
    while let Ok(Some((pdu, len))) = framing.next(input) {
        assert!(len >= 8 && len <= framing.len_bytes_max(), "{len} bytes of {pdu:?}");
        input = &input[len..];
    }
}

fn command(len_bytes: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    let sgl = Sgl::InCapsule { offset: 0, len_bytes: len_bytes as u32 };
    writer(Side::Controller, Digests::default(), 0).command(
        &mut bytes,
        &Command::new(1, 7, 1).with_sgl(sgl),
        &vec![1; len_bytes],
    );
    bytes
}

fn refused(bytes: &[u8]) -> (FatalCause, u32) {
    let error = framing(Side::Controller, Digests::default()).next(bytes).expect_err("it is wrong");
    (error.cause, error.information)
}

#[test]
fn wrong_header_is_refused_immediately() {
    let whole = command(10);
    let with = |at: usize, value: u8| {
        let mut bytes = whole.clone();
        bytes[at] = value;
        // The first eight bytes suffice.
        refused(&bytes[..8])
    };
    assert_eq!(with(0, 0x08), (FatalCause::InvalidHeader, 0));
    assert_eq!(with(0, 0x05), (FatalCause::InvalidHeader, 0));
    assert_eq!(with(1, 0x01), (FatalCause::InvalidHeader, 1));
    assert_eq!(with(1, 0x02), (FatalCause::InvalidHeader, 1));
    assert_eq!(with(2, 71), (FatalCause::InvalidHeader, 2));
    assert_eq!(with(3, 71), (FatalCause::InvalidHeader, 3));
    assert_eq!(with(3, 83), (FatalCause::InvalidHeader, 4));
    assert_eq!(with(4, 71), (FatalCause::InvalidHeader, 4));
    assert_eq!(with(7, 0xff), (FatalCause::DataLimit, 4));
    assert_eq!(refused(&command(CAPSULE_BYTES_MAX + 1)[..8]), (FatalCause::DataLimit, 4));
}

#[test]
fn data_says_how_long_it_is_once() {
    let mut bytes = Vec::new();
    let data = Data { id: 1, tag: 2, offset: 3, is_last: true, is_success: false, bytes: b"four" };
    writer(Side::Controller, Digests::default(), 0).data(&mut bytes, &data);
    bytes[16] += 1;
    assert_eq!(refused(&bytes), (FatalCause::InvalidHeader, 16));
}

/// The header can be trusted: a receiver can report which command has lost its data.
#[test]
fn corrupt_data_identifies_its_command() {
    let digests = Digests { header: true, data: true };
    let framing = framing(Side::Controller, digests);
    let writer = writer(Side::Controller, digests, 0);
    let (mut capsule, mut data) = (Vec::new(), Vec::new());
    let command = Command::new(1, 7, 1);
    writer.command(&mut capsule, &command, b"value");
    let sent = Data { id: 7, tag: 2, offset: 0, is_last: true, is_success: false, bytes: b"value" };
    writer.data(&mut data, &sent);
    for bytes in [&mut capsule, &mut data] {
        *bytes.last_mut().expect("a digest") ^= 1;
    }
    assert_eq!(framing.next(&capsule), Ok(Some((Pdu::CorruptCommand(&command), capsule.len()))));
    assert_eq!(framing.next(&data), Ok(Some((Pdu::CorruptData(sent), data.len()))));
}

#[test]
fn the_digest_is_that_of_the_transport() {
    let mut bytes = Vec::new();
    let digests = Digests { header: false, data: true };
    writer(Side::Controller, digests, 0).command(&mut bytes, &Command::new(0, 0, 0), b"123456789");
    // The check value of CRC32C.
    assert_eq!(bytes[bytes.len() - 4..], 0xe306_9283_u32.to_le_bytes());
}
