//! Scripts: their names and the options in their first line.

use std::fmt;

use resp::split_line;
use sha1::{Digest, Sha1};

/// The SHA-1 of a script, which names it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Hash([u8; Hash::TEXT_BYTES]);

impl Hash {
    /// The number of its hexadecimal digits.
    pub const TEXT_BYTES: usize = 40;

    /// Returns the hash of `text`.
    pub fn of(text: &[u8]) -> Hash {
        let mut digits = [0; Hash::TEXT_BYTES];
        for (index, byte) in Sha1::digest(text).into_iter().enumerate() {
            let digit = |value: u8| b"0123456789abcdef"[usize::from(value)];
            (digits[2 * index], digits[2 * index + 1]) = (digit(byte >> 4), digit(byte & 15));
        }
        Hash(digits)
    }

    /// Returns the hash with these digits, in any case; `None` if their number is wrong.
    pub fn parse(digits: &[u8]) -> Option<Hash> {
        digits.to_ascii_lowercase().try_into().ok().map(Hash)
    }

    /// Returns its digits.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.0))
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The options of a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScriptFlags {
    /// The script has no first line with options.
    pub is_plain: bool,
    /// It must not write.
    pub no_writes: bool,
    /// It may run while memory is short.
    pub allow_oom: bool,
}

/// The source of a script.
#[derive(Debug, Clone)]
pub struct Script {
    /// Its name.
    pub hash: Hash,
    /// Its options.
    pub flags: ScriptFlags,
    /// The text with its first line.
    pub text: Box<[u8]>,
    /// Where the program begins.
    pub(crate) start: usize,
}

/// The options that a first line may contain.
const FLAGS: [&str; 5] = ["no-writes", "allow-oom", "allow-stale", "no-cluster", "allow-cross-slot-keys"];

impl Script {
    /// Creates the script of a text, whose options are read.
    ///
    /// # Errors
    /// The text of an error reply, without its code: an unknown option or engine.
    pub fn parse(text: &[u8]) -> Result<Script, String> {
        let mut flags = ScriptFlags { is_plain: !text.starts_with(b"#!"), no_writes: false, allow_oom: false };
        let mut start = 0;
        if !flags.is_plain {
            start = text.iter().position(|byte| *byte == b'\n').ok_or("Invalid script shebang")?;
            let parts = split_line(&text[..start]).unwrap_or_default();
            let (engine, options) = parts.split_first().ok_or("Invalid engine in script shebang")?;
            if engine != b"#!lua" {
                return Err(format!("Unexpected engine in script shebang: {}", String::from_utf8_lossy(engine)));
            }
            for option in options {
                let option = String::from_utf8_lossy(option);
                let names = option.strip_prefix("flags=");
                let names = names.ok_or_else(|| format!("Unknown lua shebang option: {option}"))?;
                for name in names.split(',').filter(|_| !names.is_empty()) {
                    if !FLAGS.contains(&name) {
                        return Err(format!("Unexpected flag in script shebang: {name}"));
                    }
                    flags.no_writes |= name == "no-writes";
                    flags.allow_oom |= name == "allow-oom";
                }
            }
        }
        Ok(Script { hash: Hash::of(text), flags, text: text.into(), start })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hash_is_that_of_redis() {
        assert_eq!(Hash::of(b"return 1").to_string(), "e0e1f9fabfc9d4800c877a703b823ac0578ff8db");
        let upper = b"E0E1F9FABFC9D4800C877A703B823AC0578FF8DB";
        assert_eq!(Hash::parse(upper), Some(Hash::of(b"return 1")));
        assert_eq!(Hash::parse(b"abc"), None);
    }

    #[test]
    fn first_line_has_options() {
        let plain = Script::parse(b"return 1").expect("a script");
        assert!(plain.flags.is_plain && plain.start == 0);
        let script = Script::parse(b"#!lua flags=no-writes,allow-oom\nreturn 1").expect("a script");
        assert!(!script.flags.is_plain && script.flags.no_writes && script.flags.allow_oom && script.start == 31);
        assert!(Script::parse(b"#!lua flags=\nreturn 1").is_ok());
        for (text, error) in [
            ("#!lua", "Invalid script shebang"),
            ("#!luaa\n", "Unexpected engine in script shebang: #!luaa"),
            ("#!lua name=x\n", "Unknown lua shebang option: name=x"),
            ("#!lua flags=foo\n", "Unexpected flag in script shebang: foo"),
        ] {
            assert_eq!(Script::parse(text.as_bytes()).expect_err(text), error);
        }
    }
}
