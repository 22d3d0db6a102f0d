//! The codec of NVMe over TCP.

use nvme::{Admin, Completion, ConnectData, Data, Digests, Fabrics, Framing, Items, Keys, Kv, Pdu, Sgl, Side, Writer};

const CAPSULE_BYTES_MAX: usize = 1024;
const DATA_BYTES_MAX: usize = 2048;

/// A PDU is read the same however its bytes arrive, has no more bytes than allowed, and is the same after writing it
/// again. The first byte of `data` selects the reader, the digests, and the cuts of the other bytes.
pub fn pdus(data: &[u8]) {
    let Some((&choice, mut input)) = data.split_first() else { return };
    let side = if choice & 1 == 0 { Side::Controller } else { Side::Host };
    let digests = Digests { header: choice & 2 != 0, data: choice & 4 != 0 };
    let framing = Framing { side, digests, capsule_bytes_max: CAPSULE_BYTES_MAX, data_bytes_max: DATA_BYTES_MAX };
    let step = usize::from(choice >> 3) + 1;
    loop {
        let whole = framing.next(input);
        let cut = (0..=input.len()).step_by(step).map(|len| framing.next(&input[..len]));
        let first = cut.chain([framing.next(input)]).find(|read| !matches!(read, Ok(None)));
        match (whole, first) {
            (Ok(None), None) => return,
            (Err(_), Some(Err(_))) => return,
            (Ok(Some((pdu, len))), Some(Ok(Some(again)))) => {
                assert_eq!(again, (pdu, len));
                assert!(len <= framing.len_bytes_max());
                read_fields(&pdu);
                write_again(framing, &pdu);
                input = &input[len..];
            }
            (whole, first) => panic!("{whole:?} in one piece, {first:?} in pieces of {step}"),
        }
    }
}

/// Reads a PDU's contents as every type that they can be.
fn read_fields(pdu: &Pdu<'_>) {
    match pdu {
        Pdu::Command(command, data) => {
            let statuses = [Kv::of(command).err(), Admin::of(command).err(), Fabrics::of(command).err()];
            assert!(statuses.into_iter().flatten().all(|status| !status.is_success()));
            let _: Sgl = command.sgl();
            let _ = ConnectData::decode(data);
        }
        Pdu::Data(Data { bytes, .. }) => {
            assert!(Keys::new(bytes).count() <= bytes.len());
            assert!(Items::new(bytes).count() <= bytes.len());
        }
        _ => {}
    }
}

fn write_again(framing: Framing, pdu: &Pdu<'_>) {
    let writer = Writer { reader: framing.side, digests: framing.digests, alignment: 0 };
    let mut bytes = Vec::new();
    match pdu {
        Pdu::InitialRequest(request) => writer.initial_request(&mut bytes, request),
        Pdu::InitialResponse(response) => writer.initial_response(&mut bytes, response),
        Pdu::Command(command, data) => writer.command(&mut bytes, command, data),
        Pdu::Completion(completion) => {
            assert_eq!(Completion::decode(&completion.encode()), *completion);
            writer.completion(&mut bytes, completion);
        }
        Pdu::Data(data) if !data.bytes.is_empty() => writer.data(&mut bytes, data),
        Pdu::Ready(ready) => writer.ready(&mut bytes, ready),
        Pdu::Data(_) | Pdu::CorruptCommand(_) | Pdu::CorruptData(_) | Pdu::Terminate { .. } => return,
    }
    assert_eq!(framing.next(&bytes), Ok(Some((*pdu, bytes.len()))));
}
