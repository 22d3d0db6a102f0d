//! The libFuzzer target of `fuzz::restore`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::restore(data));
