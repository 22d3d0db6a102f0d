//! The libFuzzer target of `fuzz::pdus`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::pdus(data));
