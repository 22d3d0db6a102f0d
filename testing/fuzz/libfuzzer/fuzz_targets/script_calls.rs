//! The libFuzzer target of `fuzz::script_calls`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::script_calls(data));
