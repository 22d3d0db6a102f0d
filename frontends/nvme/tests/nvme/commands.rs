//! Encoding and decoding of commands, and decoding of random bytes.

use nvme::{Admin, Command, Connect, ConnectData, Fabrics, Key, Kv, LogPage, Sgl, Status, StoreIf, nqn_of};
use proptest::collection::vec;
use proptest::prelude::*;

fn key(len: impl Into<proptest::collection::SizeRange>) -> impl Strategy<Value = Key> {
    vec(any::<u8>(), len).prop_map(|bytes| Key::new(&bytes).expect("it is short"))
}

fn kv() -> impl Strategy<Value = Kv> {
    let when = prop_oneof![Just(StoreIf::Always), Just(StoreIf::There), Just(StoreIf::Absent), Just(StoreIf::Never)];
    prop_oneof![
        Just(Kv::Flush),
        (key(1..=16), any::<u32>(), when).prop_map(|(key, value_bytes, when)| Kv::Store { key, value_bytes, when }),
        (key(1..=16), any::<u32>()).prop_map(|(key, buffer_bytes)| Kv::Retrieve { key, buffer_bytes }),
        (key(0..=16), any::<u32>()).prop_map(|(from, buffer_bytes)| Kv::List { from, buffer_bytes }),
        (key(0..=16), any::<u32>()).prop_map(|(from, buffer_bytes)| Kv::Range { from, buffer_bytes }),
        key(1..=16).prop_map(|key| Kv::Delete { key }),
        key(1..=16).prop_map(|key| Kv::Exist { key }),
    ]
}

fn fabrics() -> impl Strategy<Value = Fabrics> {
    let len = prop_oneof![Just(4usize), Just(8)];
    prop_oneof![
        any::<(u16, u16, u32, u8)>().prop_map(|(queue, queue_entries, keep_alive_ms, attributes)| {
            Fabrics::Connect(Connect { queue, queue_entries, keep_alive_ms, attributes })
        }),
        (any::<u32>(), len.clone(), any::<u64>()).prop_map(|(offset, len_bytes, value)| Fabrics::PropertySet {
            offset,
            len_bytes,
            value
        }),
        (any::<u32>(), len).prop_map(|(offset, len_bytes)| Fabrics::PropertyGet { offset, len_bytes }),
        any::<u32>().prop_map(|len_bytes| Fabrics::AuthSend { len_bytes }),
        any::<u32>().prop_map(|len_bytes| Fabrics::AuthReceive { len_bytes }),
    ]
}

fn admin() -> impl Strategy<Value = Admin> {
    prop_oneof![
        any::<(u8, u8)>().prop_map(|(page, command_set)| Admin::Identify { page, command_set }),
        (any::<(u8, u8, u64, bool)>(), 1..1u64 << 32).prop_map(
            |((page, command_set, offset, retains_event), dwords)| {
                Admin::GetLogPage(LogPage { page, command_set, offset, len_bytes: 4 * dwords, retains_event })
            }
        ),
        any::<(u8, u32, bool)>().prop_map(|(number, value, save)| Admin::SetFeature { number, value, save }),
        (any::<u8>(), 0..8u8).prop_map(|(number, select)| Admin::GetFeature { number, select }),
        any::<(u16, u16)>().prop_map(|(queue, id)| Admin::Abort { queue, id }),
        Just(Admin::AwaitEvent),
        Just(Admin::KeepAlive),
        any::<u16>().prop_map(|number| Admin::EndController { number }),
    ]
}

fn name() -> impl Strategy<Value = String> {
    vec(0x21..0x7fu8, 1..=223).prop_map(|bytes| String::from_utf8(bytes).expect("it is ASCII"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn commands_survive_their_entry(kv in kv(), fabrics in fabrics(), admin in admin(), id in any::<u16>(), namespace in any::<u32>()) {
        let entries = [kv.command(id, namespace), fabrics.command(id), admin.command(id, namespace)];
        prop_assert_eq!(Kv::of(&entries[0]), Ok(kv));
        prop_assert_eq!(Fabrics::of(&entries[1]), Ok(fabrics));
        prop_assert_eq!(Admin::of(&entries[2]), Ok(admin));
        prop_assert!(entries.iter().all(|entry| entry.id() == id));
        prop_assert_eq!([entries[0].namespace(), entries[2].namespace()], [namespace; 2]);
    }

    #[test]
    fn any_entry_is_read_or_refused(bytes in vec(any::<u8>(), 64), opcode in prop_oneof![0..0x20u8, Just(0x7f), any::<u8>()]) {
        let mut entry = Command(bytes.try_into().expect("64 bytes"));
        entry.0[0] = opcode;
        for refused in [Kv::of(&entry).err(), Fabrics::of(&entry).err(), Admin::of(&entry).err()].into_iter().flatten() {
            prop_assert!(!refused.is_success());
        }
    }

    #[test]
    fn data_is_described(offset in any::<u64>(), len_bytes in any::<u32>()) {
        for sgl in [Sgl::InCapsule { offset, len_bytes }, Sgl::Transport { len_bytes }, Sgl::Other] {
            prop_assert_eq!(Command::new(1, 2, 3).with_sgl(sgl).sgl(), sgl);
        }
    }

    #[test]
    fn connect_data_names_host(host_id in any::<[u8; 16]>(), controller in any::<u16>(), subsystem in name(), host in name()) {
        let data = ConnectData { host_id, controller, subsystem, host };
        prop_assert_eq!(ConnectData::decode(&data.encode()), Ok(data));
    }

    #[test]
    fn connect_data_is_read_or_refused(bytes in vec(any::<u8>(), 1020..1028)) {
        let _ = ConnectData::decode(&bytes);
    }
}

#[test]
fn keys_have_1_to_16_bytes() {
    assert_eq!(Key::new(&[0; 17]), None);
    let key = Key::new(b"k").expect("it is short");
    let of_len = |kv: Kv, len| Kv::of(&kv.command(0, 1).with_dword(11, len));
    let store = Kv::Store { key, value_bytes: 0, when: StoreIf::Always };
    let (retrieve, delete, exist) = (Kv::Retrieve { key, buffer_bytes: 0 }, Kv::Delete { key }, Kv::Exist { key });
    for (kv, empty) in [
        (store, Status::INVALID_KEY_SIZE),
        (retrieve, Status::INVALID_KEY_SIZE),
        (delete, Status::INVALID_FIELD),
        (exist, Status::INVALID_FIELD),
    ] {
        assert_eq!(
            [0, 1, 17, 255].map(|len| of_len(kv, len)).map(|read| read.err()),
            [Some(empty), None, Some(Status::INVALID_FIELD), Some(Status::INVALID_FIELD)]
        );
    }
    assert_eq!(of_len(Kv::List { from: key, buffer_bytes: 0 }, 17), Err(Status::INVALID_FIELD));
}

#[test]
fn options_that_are_not_known_are_refused() {
    let key = Key::new(b"k").expect("it is short");
    let store = Kv::Store { key, value_bytes: 1, when: StoreIf::Always }.command(0, 1);
    for options in [8, 0x10, 0x80] {
        assert_eq!(Kv::of(&store.with_dword(11, 1 | options << 8)), Err(Status::INVALID_FIELD));
    }
    // Whether a value is compressed is up to the device.
    for (options, when) in [(4, StoreIf::Always), (5, StoreIf::There), (6, StoreIf::Absent), (7, StoreIf::Never)] {
        assert_eq!(Kv::of(&store.with_dword(11, 1 | options << 8)), Ok(Kv::Store { key, value_bytes: 1, when }));
    }
    assert_eq!(Kv::of(&Kv::Exist { key }.command(0, 1).with_dword(11, 0x101)), Err(Status::INVALID_FIELD));
}

#[test]
fn name_is_printable_and_ends() {
    let field = |text: &[u8]| [text, &vec![0; 256 - text.len()]].concat();
    assert_eq!(nqn_of(&field(b"nqn.2024-01.org.example:a")).as_deref(), Some("nqn.2024-01.org.example:a"));
    for wrong in [&b""[..], b"two words", b"\xff", &[b'x'; 224]] {
        assert_eq!(nqn_of(&field(wrong)), None);
    }
    assert_eq!(nqn_of(&[b'x'; 200]), None);
}
