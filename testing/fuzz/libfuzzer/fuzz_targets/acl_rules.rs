//! The libFuzzer target of `fuzz::acl_rules`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::acl_rules(data));
