//! The C header and this crate define the same interface.

use std::mem::offset_of;

use ink_client::abi::{self, Op, Request, Stat};

const HEADER: &str = include_str!("../../../kernel/ink/ink.h");

/// Returns the fields of a structure, in order, with their lengths.
fn fields(structure: &str) -> Vec<(String, usize)> {
    let (_, body) = HEADER.split_once(&format!("struct {structure} {{")).expect("the header has it");
    let body = body.split_once("};").expect("it ends").0;
    let declared =
        body.lines().filter_map(|line| line.trim().split_once(';')).filter_map(|(field, _)| field.split_once(' '));
    declared.map(|(kind, name)| (name.to_owned(), if kind.ends_with("64") { 8 } else { 4 })).collect()
}

fn laid_out(structure: &str) -> Vec<(String, usize)> {
    let mut at = 0;
    let mut place = |(name, len): (String, usize)| {
        at += len;
        (name, at - len)
    };
    fields(structure).into_iter().map(&mut place).collect()
}

macro_rules! offsets {
    ($kind:ty, $($field:ident)*) => { vec![$((stringify!($field).to_owned(), offset_of!($kind, $field))),*] };
}

#[test]
fn structures_have_the_headers_fields() {
    let request = offsets!(Request, version flags key value key_len op value_len result count error reserved);
    assert_eq!(laid_out("ink_request"), request);
    assert_eq!(size_of::<Request>(), 64);
    let stat =
        offsets!(Stat, region_bytes used_bytes live_bytes free_bytes dram_bytes lanes swept undone merged durability);
    assert_eq!(laid_out("ink_stat"), stat);
    assert_eq!(size_of::<Stat>(), 80);
}

#[test]
fn numbers_are_the_headers() {
    for (op, name) in [
        (Op::Insert, "INSERT"),
        (Op::Read, "READ"),
        (Op::Remove, "REMOVE"),
        (Op::Scan, "SCAN"),
        (Op::Submit, "SUBMIT"),
        (Op::Stat, "STAT"),
        (Op::Check, "CHECK"),
        (Op::Clear, "CLEAR"),
    ] {
        assert!(HEADER.contains(&format!("#define INK_OP_{name}\t{}u", op as u32)), "{name}");
        assert!(
            HEADER.contains(&format!("#define INK_{name}\t_IOWR(0xd7, {}, struct ink_request)", op as u32)),
            "{name}"
        );
        assert_eq!(op.number() as u32, 0xc040_d700 | op as u32);
    }
    assert!(HEADER.contains(&format!("#define INK_DURABILITY_POWER\t{}u", abi::DURABILITY_POWER)));
    assert!(HEADER.contains("#define INK_SCAN_MAX\t(8u + INK_KEY_MAX + INK_VALUE_MAX)"));
    assert_eq!(abi::SCAN_BYTES_MAX, 8 + abi::KEY_BYTES_MAX + abi::VALUE_BYTES_MAX);
    assert!(HEADER.contains(&format!("#define INK_KEY_MAX\t{}u", abi::KEY_BYTES_MAX)));
    assert!(HEADER.contains(&format!("#define INK_SUBMIT_MAX\t{}u", abi::SUBMIT_COUNT_MAX)));
    assert!(HEADER.contains("#define INK_VALUE_MAX\t(1u << 20)") && abi::VALUE_BYTES_MAX == 1 << 20);
}
