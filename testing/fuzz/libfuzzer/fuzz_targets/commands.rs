//! The libFuzzer target of `fuzz::commands`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::commands(data));
