//! The libFuzzer target of `fuzz::rdb_files`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::rdb_files(data));
