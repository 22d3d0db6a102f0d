//! Encoding and decoding of pages and lists, and decoding of random pages.

use nvme::{
    ControllerKind, DiscoveryEntry, DiscoveryLog, Health, IdentifyController, Items, Keys, KvNamespace, ListWriter,
    RangeWriter, active_namespaces, command_sets, effects, independent_namespace, namespace_descriptors,
};
use proptest::collection::vec;
use proptest::prelude::*;

fn items() -> impl Strategy<Value = Vec<(Vec<u8>, Vec<u8>)>> {
    vec((vec(any::<u8>(), 0..20), vec(any::<u8>(), 0..50)), 0..20)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn lists_fill_the_buffer(items in items(), buffer_bytes in 4usize..600) {
        let mut writer = ListWriter::new(buffer_bytes);
        let key_count = items.iter().take_while(|(key, _)| writer.push(key)).count();
        let list = writer.take();
        let mut writer = RangeWriter::new(buffer_bytes);
        let item_count = items.iter().take_while(|(key, value)| writer.push(key, value)).count();
        let range = writer.take();
        prop_assert!(list.len() <= buffer_bytes && range.len() <= buffer_bytes);
        let keys: Vec<&[u8]> = Keys::new(&list).collect();
        prop_assert_eq!(keys, items[..key_count].iter().map(|(key, _)| &key[..]).collect::<Vec<_>>());
        let read: Vec<(&[u8], &[u8])> = Items::new(&range).collect();
        prop_assert_eq!(read, items[..item_count].iter().map(|(key, value)| (&key[..], &value[..])).collect::<Vec<_>>());
        if let Some((key, value)) = items.get(item_count).filter(|_| item_count == 0) {
            prop_assert!(RangeWriter::alone_bytes(key, value) > buffer_bytes);
        }
    }

    #[test]
    fn any_list_ends(bytes in vec(any::<u8>(), 0..200)) {
        prop_assert!(Keys::new(&bytes).count() <= bytes.len());
        prop_assert!(Items::new(&bytes).count() <= bytes.len());
    }

    #[test]
    fn any_page_is_read(bytes in vec(any::<u8>(), 0..5000)) {
        let (_, _, _) = (IdentifyController::decode(&bytes), KvNamespace::decode(&bytes), Health::decode(&bytes));
        let _ = DiscoveryLog::decode(&bytes);
    }
}

#[test]
fn pages_survive() {
    let controller = IdentifyController {
        kind: ControllerKind::Io,
        controller: 7,
        serial: "0123".into(),
        model: "hikv".into(),
        firmware: "0.1.0".into(),
        transfer_max: 8,
        command_count_max: 128,
        event_count_max: 4,
        capsule_bytes_max: 8192,
        capacity_bytes: 1 << 40,
        has_volatile_cache: true,
        subsystem: "nqn.2024-01.org.example:a".into(),
    };
    assert_eq!(IdentifyController::decode(&controller.encode()), controller);
    let namespace = KvNamespace {
        size_bytes: 1 << 40,
        used_bytes: 77,
        value_bytes_max: 1 << 20,
        uuid: [9; 16],
        is_write_protected: true,
    };
    assert_eq!(KvNamespace::decode(&namespace.encode()), namespace);
    let health =
        Health { spare_percent: 9, threshold_percent: 10, is_spare_low: true, read_count: 1, ..Health::default() };
    assert_eq!(Health::decode(&health.encode()), health);
    let entry = |is_discovery, addr: &str| DiscoveryEntry {
        is_discovery,
        port: 1,
        subsystem: "nqn.2024-01.org.example:a".into(),
        addr: addr.parse().expect("an address"),
    };
    let log = DiscoveryLog { generation: 3, entries: vec![entry(false, "127.0.0.1:4420"), entry(true, "[::1]:4420")] };
    assert_eq!(DiscoveryLog::decode(&log.encode()), log);
}

#[test]
fn namespaces_are_listed_above_a_number() {
    let first = |above| u32::from_le_bytes(*active_namespaces(above, 1).first_chunk().expect("a page"));
    assert_eq!([first(0), first(1), first(u32::MAX)], [1, 0, 0]);
    assert_eq!(independent_namespace(true)[..15], [0, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1]);
    assert_eq!(namespace_descriptors([5; 16])[..4], [3, 16, 0, 0]);
    assert_eq!(command_sets()[0], 2);
    assert_eq!(effects(1)[1024 + 4], 3);
    assert_eq!(effects(0)[1024 + 4], 0);
}
