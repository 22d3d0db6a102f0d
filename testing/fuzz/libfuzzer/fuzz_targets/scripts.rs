//! The libFuzzer target of `fuzz::scripts`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::scripts(data));
