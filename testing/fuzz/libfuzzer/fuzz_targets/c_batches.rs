//! The libFuzzer target of `fuzz::c_batches`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::c_batches(data));
