//! Secrets, responses and messages of DH-HMAC-CHAP. The responses were computed by another program (Python's `hmac`), from the order of
//! fields that the specification and Linux' `nvme_auth_dhchap_setup_host_response` have.

use nvme::dhchap::{Challenge, Failure, Hash, Negotiate, Reply, Secret, SecretError, Success, Transaction};
use proptest::collection::vec;
use proptest::prelude::*;

const HOST: &str = "nqn.2014-08.org.nvmexpress:uuid:11111111-2222-3333-4444-555555555555";
const SUBSYSTEM: &str = "nqn.2014-08.org.nvmexpress:uuid:66666666-7777-8888-9999-aaaaaaaaaaaa";
const BOUND: &str = "DHHC-1:01:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+KfiaR:";
const PLAIN: &str = "DHHC-1:00:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+KfiaR:";

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn responses_are_as_specified() {
    let cases = [
        (
            BOUND,
            Hash::Sha256,
            "217c4d698cde043beb74019a64a271608e25c0c8b7933c57dfb2f7522f7508da",
            "b1631cc9174b8ad9d5ea5be15e468d71caa1bae29e7db18960e6380486dfc4d5",
        ),
        (
            BOUND,
            Hash::Sha384,
            "e0f067a5cf45d8bade1b352498e52c69560ae59964aec9b02cbb3121853080cd5c019069a2fe1141cbfd1233eba44cb7",
            "91ec5594c06bd36bf17eb859f41eaef10b94202442d21b508224e58dbb6625e5e17be6fa2adaddbf101d94ad6de864cb",
        ),
        (
            PLAIN,
            Hash::Sha512,
            "66739ef5aa7bf8bc8bfff9958f0dc84cc27071c4c5eec8d939ed2bf56d967a8cb4a11a648ed800f68e9d08c50edb892041707fcab31c6e4bccc15e94ca3fec79",
            "2fbfba6544e23970f3600807beb6dc36a6ee0bc197b73afc4e6e5d0b1953ba8770d2a45773659ffa6f464d7305cbf2f0758533d16e58c278c737c4d29b5abaaf",
        ),
    ];
    for (secret, hash, of_host, of_controller) in cases {
        let secret = Secret::parse(secret).expect("it is one");
        let by = Transaction { hash, id: 0x0506, sequence: 0x0102_0304, host: HOST, subsystem: SUBSYSTEM };
        let challenge = |byte: u8| vec![byte; hash.len_bytes()];
        assert_eq!(hex(&secret.host_response(&challenge(0xc1), &by)), of_host);
        assert_eq!(hex(&secret.controller_response(&challenge(0xc2), &by)), of_controller);
    }
}

/// As `nvme gen-dhchap-key` of nvme-cli 2.3 makes them, and what is left of them.
#[test]
fn secrets_are_those_of_nvme_cli() {
    let made = [
        "DHHC-1:00:wS+mm6ZuwVZtQGor9xVUptbzY7Uf7F8wqkEO23lnNc/nwr1X:",
        "DHHC-1:01:7UJgbL3Gfh1nsLBopED4548Pg4Pmoh3KC/IxPUHwFKEgB8wn:",
    ];
    for text in made {
        assert!(Secret::parse(text).is_ok() && Secret::parse(&format!("{text}\n")).is_ok());
        assert_eq!(Secret::parse(&text.replacen('w', "x", 1).replacen("7U", "8U", 1)), Err(SecretError::Checksum));
        assert_eq!(Secret::parse(text.trim_end_matches(':')), Err(SecretError::Form));
    }
    for (wrong, why) in [
        ("", SecretError::Form),
        ("DHHC-1:00::", SecretError::Length),
        ("DHHC-1:0:AAAA:", SecretError::Form),
        ("DHHC-1:+1:AAAA:", SecretError::Form),
        ("DHHC-1:04:AAAA:", SecretError::Hash),
        ("DHHC-1:00:?:", SecretError::Form),
        ("DHHC-1:02:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+KfiaR:", SecretError::Length),
    ] {
        assert_eq!(Secret::parse(wrong), Err(why), "{wrong}");
    }
    assert_eq!(format!("{:?}", Secret::parse(PLAIN).expect("it is one")), "a secret");
}

#[test]
fn messages_survive() {
    let negotiate = Negotiate { id: 7, hashes: Hash::ALL.to_vec() };
    assert_eq!(Negotiate::decode(&negotiate.encode()), Some(negotiate.clone()));
    let mut other_group = negotiate.encode();
    other_group[8 + 34] = 1;
    assert_eq!(Negotiate::decode(&other_group), None, "ffdhe2048 alone");
    for hash in Hash::ALL {
        let len = hash.len_bytes();
        let challenge = Challenge { id: 7, hash, sequence: 9, value: vec![3; len] };
        assert_eq!(Challenge::decode(&challenge.encode()), Some(challenge));
        for challenge in [None, Some((5, vec![4; len]))] {
            let reply = Reply { id: 7, response: vec![2; len], challenge };
            assert_eq!(Reply::decode(&reply.encode(), len), Some(reply.clone()));
            assert_eq!(reply.encode().len(), 16 + 2 * len);
            assert!(reply.answers(&vec![2; len]) && !reply.answers(&vec![1; len]) && !reply.answers(&[]));
        }
        for response in [None, Some(vec![6; len])] {
            let success = Success::Controller { id: 7, hash_bytes: len, response };
            assert_eq!(Success::decode(&success.encode()), Some(success));
        }
    }
    assert_eq!(Success::decode(&Success::Host { id: 7 }.encode()), Some(Success::Host { id: 7 }));
    for is_of_host in [false, true] {
        let failure = Failure { id: 7, is_of_host, why: 6 };
        assert_eq!(Failure::decode(&failure.encode()), Some(failure));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_message_is_read(kind in 0u8..7, mut bytes in vec(any::<u8>(), 0..200), hash_bytes in 0usize..70) {
        let kinds = [[0, 0], [1, 1], [1, 2], [1, 3], [1, 4], [0, 0xf0], [0, 0xf1]];
        bytes.iter_mut().zip(kinds[usize::from(kind)]).for_each(|(byte, kind)| *byte = kind);
        let _ = (Negotiate::decode(&bytes), Challenge::decode(&bytes), Reply::decode(&bytes, hash_bytes));
        let _ = (Success::decode(&bytes), Failure::decode(&bytes));
    }
}
