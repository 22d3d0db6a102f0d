//! The libFuzzer target of `fuzz::replies`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::replies(data));
