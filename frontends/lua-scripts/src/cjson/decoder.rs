//! From JSON to Lua values.

use mlua::{Lua, Value};

use super::{DEPTH_MAX, InvalidNumbers, Settings, null};
use crate::errors::at_place;

/// A token with its value.
#[derive(Debug, PartialEq)]
enum Token {
    ObjectBegin,
    ObjectEnd,
    ArrayBegin,
    ArrayEnd,
    String(Vec<u8>),
    Number(f64),
    Boolean(bool),
    Null,
    Colon,
    Comma,
    End,
    Error(&'static str),
}

impl Token {
    /// Returns the name in errors.
    fn name(&self) -> &'static str {
        match self {
            Token::ObjectBegin => "T_OBJ_BEGIN",
            Token::ObjectEnd => "T_OBJ_END",
            Token::ArrayBegin => "T_ARR_BEGIN",
            Token::ArrayEnd => "T_ARR_END",
            Token::String(_) => "T_STRING",
            Token::Number(_) => "T_NUMBER",
            Token::Boolean(_) => "T_BOOLEAN",
            Token::Null => "T_NULL",
            Token::Colon => "T_COLON",
            Token::Comma => "T_COMMA",
            Token::End => "T_END",
            Token::Error(text) => text,
        }
    }
}

/// Returns the value of a JSON text.
pub(super) fn decode(lua: &Lua, input: &[u8], settings: Settings) -> mlua::Result<Value> {
    if input.len() >= 2 && (input[0] == 0 || input[1] == 0) {
        return Err(at_place(lua, "JSON parser does not support UTF-16 or UTF-32"));
    }
    let mut decoder = Decoder { lua, settings, input, at: 0, token_at: 0 };
    let first = decoder.next();
    let value = decoder.value(first, 0)?;
    match decoder.next() {
        Token::End => Ok(value),
        other => Err(decoder.expected("the end", &other)),
    }
}

struct Decoder<'a> {
    lua: &'a Lua,
    settings: Settings,
    input: &'a [u8],
    at: usize,
    /// Where the last token began.
    token_at: usize,
}

impl Decoder<'_> {
    fn expected(&self, what: &str, found: &Token) -> mlua::Error {
        let text = format!("Expected {what} but found {} at character {}", found.name(), self.token_at + 1);
        at_place(self.lua, &text)
    }

    fn value(&mut self, token: Token, depth: i64) -> mlua::Result<Value> {
        Ok(match token {
            Token::String(text) => Value::String(self.lua.create_string(text)?),
            Token::Number(number) => Value::Number(number),
            Token::Boolean(value) => Value::Boolean(value),
            Token::Null => null(),
            Token::ObjectBegin => self.object(depth + 1)?,
            Token::ArrayBegin => self.array(depth + 1)?,
            other => return Err(self.expected("value", &other)),
        })
    }

    fn check_depth(&self, depth: i64) -> mlua::Result<()> {
        if depth <= self.settings.decode_depth_max.min(DEPTH_MAX) {
            return Ok(());
        }
        let text = format!("Found too many nested data structures ({depth}) at character {}", self.at);
        Err(at_place(self.lua, &text))
    }

    fn object(&mut self, depth: i64) -> mlua::Result<Value> {
        self.check_depth(depth)?;
        let table = self.lua.create_table()?;
        let mut token = self.next();
        if token == Token::ObjectEnd {
            return Ok(Value::Table(table));
        }
        loop {
            let Token::String(key) = token else { return Err(self.expected("object key string", &token)) };
            match self.next() {
                Token::Colon => {}
                other => return Err(self.expected("colon", &other)),
            }
            let first = self.next();
            table.raw_set(self.lua.create_string(key)?, self.value(first, depth)?)?;
            match self.next() {
                Token::ObjectEnd => return Ok(Value::Table(table)),
                Token::Comma => token = self.next(),
                other => return Err(self.expected("comma or object end", &other)),
            }
        }
    }

    fn array(&mut self, depth: i64) -> mlua::Result<Value> {
        self.check_depth(depth)?;
        let table = self.lua.create_table()?;
        let mut token = self.next();
        if token == Token::ArrayEnd {
            return Ok(Value::Table(table));
        }
        for index in 1.. {
            table.raw_set(index, self.value(token, depth)?)?;
            match self.next() {
                Token::ArrayEnd => break,
                Token::Comma => token = self.next(),
                other => return Err(self.expected("comma or array end", &other)),
            }
        }
        Ok(Value::Table(table))
    }

    fn next(&mut self) -> Token {
        let is_space = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
        self.at += self.input[self.at..].iter().take_while(|byte| is_space(byte)).count();
        self.token_at = self.at;
        let Some(byte) = self.input.get(self.at) else { return Token::End };
        let single = match byte {
            b'{' => Token::ObjectBegin,
            b'}' => Token::ObjectEnd,
            b'[' => Token::ArrayBegin,
            b']' => Token::ArrayEnd,
            b':' => Token::Colon,
            b',' => Token::Comma,
            b'"' => return self.string(),
            b'-' | b'0'..=b'9' => return self.number(),
            _ => return self.word(),
        };
        self.at += 1;
        single
    }

    fn word(&mut self) -> Token {
        let rest = &self.input[self.at..];
        for (word, token) in [("true", Token::Boolean(true)), ("false", Token::Boolean(false)), ("null", Token::Null)] {
            if rest.starts_with(word.as_bytes()) {
                self.at += word.len();
                return token;
            }
        }
        if self.settings.decoded_invalid != InvalidNumbers::Refused {
            if rest[0] == b'+' && rest.get(1).is_some_and(u8::is_ascii_digit) {
                self.at += 1;
                return self.number();
            }
            let begins = |word: &[u8]| rest.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word));
            let named = [(&b"infinity"[..], f64::INFINITY), (b"inf", f64::INFINITY), (b"nan", f64::NAN)];
            if let Some((word, number)) = named.into_iter().find(|(word, _)| begins(word)) {
                self.at += word.len();
                return Token::Number(number);
            }
        }
        Token::Error("invalid token")
    }

    fn number(&mut self) -> Token {
        let rest = &self.input[self.at..];
        let sign_len = usize::from(rest[0] == b'-');
        let (sign, digits) = (if sign_len == 1 { -1.0 } else { 1.0 }, &rest[sign_len..]);
        let accepts_all = self.settings.decoded_invalid != InvalidNumbers::Refused;
        let lower: Vec<u8> = digits.iter().take(8).map(u8::to_ascii_lowercase).collect();
        if accepts_all && lower.starts_with(b"0x") {
            let hex_len = digits[2..].iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
            let value = digits[2..2 + hex_len]
                .iter()
                .fold(0.0, |sum, byte| sum * 16.0 + f64::from(char::from(*byte).to_digit(16).unwrap_or(0)));
            self.at += sign_len + 2 + hex_len;
            return Token::Number(sign * value);
        }
        for (word, value) in [(&b"infinity"[..], f64::INFINITY), (b"inf", f64::INFINITY), (b"nan", f64::NAN)] {
            if accepts_all && lower.starts_with(word) {
                self.at += sign_len + word.len();
                return Token::Number(sign * value);
            }
        }
        let has_leading_zero = digits.len() > 1 && digits[0] == b'0' && digits[1].is_ascii_digit();
        let len = decimal_len(digits);
        let text = std::str::from_utf8(&digits[..len]).ok();
        match text.and_then(|text| text.parse::<f64>().ok()) {
            Some(value) if accepts_all || !has_leading_zero => {
                self.at += sign_len + len;
                Token::Number(sign * value)
            }
            _ => Token::Error("invalid number"),
        }
    }

    fn string(&mut self) -> Token {
        let mut text = Vec::new();
        self.at += 1;
        while let Some(byte) = self.input.get(self.at) {
            let escape_at = self.at;
            self.at += 1;
            match byte {
                b'"' => return Token::String(text),
                b'\\' => {
                    let escape = self.input.get(self.at).copied();
                    self.at += 1;
                    match escape {
                        Some(byte @ (b'"' | b'\\' | b'/')) => text.push(byte),
                        Some(b'b') => text.push(8),
                        Some(b't') => text.push(b'\t'),
                        Some(b'n') => text.push(b'\n'),
                        Some(b'f') => text.push(12),
                        Some(b'r') => text.push(b'\r'),
                        Some(b'u') => match self.unicode() {
                            Some(character) => {
                                text.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                            }
                            None => return self.failed("invalid unicode escape code", escape_at),
                        },
                        _ => return self.failed("invalid escape code", escape_at),
                    }
                }
                byte => text.push(*byte),
            }
        }
        self.failed("unexpected end of string", self.input.len())
    }

    /// Returns an error at this character.
    fn failed(&mut self, why: &'static str, at: usize) -> Token {
        (self.at, self.token_at) = (self.at.min(self.input.len()), at);
        Token::Error(why)
    }

    /// Reads the digits of a code unit, and of the second half of a pair.
    fn unicode(&mut self) -> Option<char> {
        let first = self.code_unit()?;
        if !(0xd800..0xe000).contains(&first) {
            return char::from_u32(first);
        }
        if !self.input[self.at..].starts_with(b"\\u") {
            return None;
        }
        self.at += 2;
        let second = self.code_unit()?;
        char::decode_utf16([first as u16, second as u16]).next()?.ok()
    }

    fn code_unit(&mut self) -> Option<u32> {
        let digits = self.input.get(self.at..self.at + 4)?;
        let text = std::str::from_utf8(digits).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
        self.at += 4;
        u32::from_str_radix(text, 16).ok()
    }
}

/// Returns the length of the decimal number at the start.
fn decimal_len(text: &[u8]) -> usize {
    let digits = |from: usize| text[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let mut len = digits(0);
    if text.get(len) == Some(&b'.') {
        len += 1 + digits(len + 1);
    }
    if len > 0 && text.get(len).is_some_and(|byte| byte.eq_ignore_ascii_case(&b'e')) {
        let sign_len = usize::from(text.get(len + 1).is_some_and(|byte| matches!(byte, b'+' | b'-')));
        let exponent_len = digits((len + 1 + sign_len).min(text.len()));
        if exponent_len > 0 {
            len += 1 + sign_len + exponent_len;
        }
    }
    len
}
