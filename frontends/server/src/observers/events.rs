//! Classes of key events, and their letters in `notify-keyspace-events`.

/// Classes of events, as bits.
pub(crate) type Class = u32;

pub(crate) const KEYSPACE: Class = 1;
pub(crate) const KEYEVENT: Class = 1 << 1;
pub(crate) const GENERIC: Class = 1 << 2;
pub(crate) const STRING: Class = 1 << 3;
pub(crate) const LIST: Class = 1 << 4;
pub(crate) const SET: Class = 1 << 5;
pub(crate) const HASH: Class = 1 << 6;
pub(crate) const ZSET: Class = 1 << 7;
pub(crate) const EXPIRED: Class = 1 << 8;
pub(crate) const EVICTED: Class = 1 << 9;
pub(crate) const STREAM: Class = 1 << 10;
pub(crate) const KEY_MISS: Class = 1 << 11;
pub(crate) const MODULE: Class = 1 << 13;
pub(crate) const NEW: Class = 1 << 14;
const ALL: Class = GENERIC | STRING | LIST | SET | HASH | ZSET | EXPIRED | EVICTED | STREAM | MODULE;

/// In the order of `CONFIG GET`.
const LETTERS: [(u8, Class); 14] = [
    (b'g', GENERIC),
    (b'$', STRING),
    (b'l', LIST),
    (b's', SET),
    (b'h', HASH),
    (b'z', ZSET),
    (b'x', EXPIRED),
    (b'e', EVICTED),
    (b't', STREAM),
    (b'd', MODULE),
    (b'n', NEW),
    (b'K', KEYSPACE),
    (b'E', KEYEVENT),
    (b'm', KEY_MISS),
];

/// Parses a text of class letters; `None` if a letter is unknown.
pub(crate) fn parse(text: &[u8]) -> Option<Class> {
    text.iter().try_fold(0, |classes, letter| match letter {
        b'A' => Some(classes | ALL),
        letter => LETTERS.iter().find(|(known, _)| known == letter).map(|(_, class)| classes | class),
    })
}

/// Formats the letters of `classes`.
pub(crate) fn text_of(classes: Class) -> String {
    let has_all = classes & ALL == ALL;
    let letters = LETTERS.iter().filter(|(_, class)| classes & class != 0 && !(has_all && class & ALL != 0));
    has_all.then_some('A').into_iter().chain(letters.map(|(letter, _)| char::from(*letter))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn class_letters_are_ordered() {
        let shown = |text: &str| parse(text.as_bytes()).map(text_of);
        assert_eq!(shown("KEg").as_deref(), Some("gKE"));
        assert_eq!(shown("KEA").as_deref(), Some("AKE"));
        assert_eq!(shown("$lshzxeKE").as_deref(), Some("$lshzxeKE"));
        assert_eq!(shown("").as_deref(), Some(""));
        assert_eq!(shown("q"), None);
    }
}
