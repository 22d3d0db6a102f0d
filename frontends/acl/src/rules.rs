//! The language of ACL rules.

use super::password::Hash;
use super::selector::{KeyPattern, Selector};
use super::user::User;
use command_table::{self as table, category};

/// Why a rule is rejected, in Redis' words.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RuleError {
    Syntax,
    UnknownCommand,
    UnknownCategory,
    NoSuchPassword,
    BadHash,
    KeysAreAll,
    ChannelsAreAll,
}

impl RuleError {
    pub fn text(self) -> &'static str {
        match self {
            RuleError::Syntax => "Syntax error",
            RuleError::UnknownCommand | RuleError::UnknownCategory => "Unknown command or category name in ACL",
            RuleError::NoSuchPassword => "The password you are trying to remove from the user does not exist",
            RuleError::BadHash => {
                "The password hash must be exactly 64 characters and contain only lowercase hexadecimal characters"
            }
            RuleError::KeysAreAll => {
                "Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and does not have any effect. Try 'resetkeys' to start with an empty list of patterns"
            }
            RuleError::ChannelsAreAll => {
                "Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid and does not have any effect. Try 'resetchannels' to start with an empty list of channels"
            }
        }
    }
}

impl User {
    /// Applies one rule to the user.
    pub fn apply(&mut self, rule: &[u8]) -> Result<(), RuleError> {
        match rule.to_ascii_lowercase().as_slice() {
            // An empty rule is ignored, as in Redis.
            b"" => {}
            b"on" => self.is_enabled = true,
            b"off" => self.is_enabled = false,
            b"nopass" => (self.needs_no_password, self.passwords) = (true, Vec::new()),
            b"resetpass" => (self.needs_no_password, self.passwords) = (false, Vec::new()),
            b"reset" => *self = User::new(&self.name),
            b"clearselectors" | b"sanitize-payload" | b"skip-sanitize-payload" => {}
            _ => match rule {
                [b'>', password @ ..] => self.add_password(Hash::of(password)),
                [b'#', digits @ ..] => self.add_password(Hash::from_hex(digits).ok_or(RuleError::BadHash)?),
                [b'<', password @ ..] => self.remove_password(&Hash::of(password))?,
                [b'!', digits @ ..] => self.remove_password(&Hash::from_hex(digits).ok_or(RuleError::BadHash)?)?,
                rule => self.selector.apply(rule)?,
            },
        }
        Ok(())
    }

    fn add_password(&mut self, hash: Hash) {
        self.needs_no_password = false;
        if !self.passwords.contains(&hash) {
            self.passwords.push(hash);
        }
    }

    fn remove_password(&mut self, hash: &Hash) -> Result<(), RuleError> {
        let count = self.passwords.len();
        self.passwords.retain(|known| known != hash);
        if self.passwords.len() == count { Err(RuleError::NoSuchPassword) } else { Ok(()) }
    }
}

impl Selector {
    fn apply(&mut self, rule: &[u8]) -> Result<(), RuleError> {
        match rule.to_ascii_lowercase().as_slice() {
            b"allkeys" => self.allow_all_keys(),
            b"resetkeys" => (self.all_keys, self.keys) = (false, Vec::new()),
            b"allchannels" => self.allow_all_channels(),
            b"resetchannels" => (self.all_channels, self.channels) = (false, Vec::new()),
            b"allcommands" => self.apply_commands(true, b"@all")?,
            b"nocommands" => self.apply_commands(false, b"@all")?,
            _ => match rule {
                b"~*" => self.allow_all_keys(),
                [b'~', pattern @ ..] => self.allow_keys(pattern, true, true)?,
                [b'%', letters @ ..] => self.allow_keys_by_letters(letters)?,
                b"&*" => self.allow_all_channels(),
                [b'&', ..] if self.all_channels => return Err(RuleError::ChannelsAreAll),
                [b'&', pattern @ ..] => self.allow_channels(pattern)?,
                [b'+', name @ ..] => self.apply_commands(true, name)?,
                [b'-', name @ ..] => self.apply_commands(false, name)?,
                _ => return Err(RuleError::Syntax),
            },
        }
        Ok(())
    }

    fn allow_all_keys(&mut self) {
        (self.all_keys, self.keys) = (true, Vec::new());
    }

    fn allow_all_channels(&mut self) {
        (self.all_channels, self.channels) = (true, Vec::new());
    }

    fn allow_channels(&mut self, pattern: &[u8]) -> Result<(), RuleError> {
        let pattern = checked(pattern)?;
        if !self.channels.iter().any(|known| known == pattern) {
            self.channels.push(pattern.to_vec());
        }
        Ok(())
    }

    /// Applies `R~`, `W~` or `RW~`, followed by a pattern.
    fn allow_keys_by_letters(&mut self, rule: &[u8]) -> Result<(), RuleError> {
        let end = rule.iter().position(|byte| *byte == b'~').ok_or(RuleError::Syntax)?;
        let letters = rule[..end].to_ascii_uppercase();
        let is_known = !letters.is_empty() && letters.iter().all(|letter| matches!(letter, b'R' | b'W'));
        if !is_known {
            return Err(RuleError::Syntax);
        }
        self.allow_keys(&rule[end + 1..], letters.contains(&b'R'), letters.contains(&b'W'))
    }

    fn allow_keys(&mut self, pattern: &[u8], reads: bool, writes: bool) -> Result<(), RuleError> {
        if self.all_keys {
            return Err(RuleError::KeysAreAll);
        }
        let allowed = KeyPattern { pattern: checked(pattern)?.to_vec(), reads, writes };
        match self.keys.iter_mut().find(|known| known.pattern == allowed.pattern) {
            Some(known) => (known.reads, known.writes) = (known.reads | reads, known.writes | writes),
            None => self.keys.push(allowed),
        }
        Ok(())
    }

    fn apply_commands(&mut self, allowed: bool, name: &[u8]) -> Result<(), RuleError> {
        let name = name.to_ascii_lowercase();
        match name.as_slice() {
            b"@all" => {
                self.command_rules.clear();
                self.commands.set_where(allowed, |_| true);
                self.all_commands = allowed;
            }
            [b'@', name @ ..] => {
                let wanted = category::by_name(name).ok_or(RuleError::UnknownCategory)?;
                self.commands.set_where(allowed, |command| command.categories & wanted != 0);
                self.all_commands &= allowed;
            }
            name => {
                let entry = table::by_name(name).ok_or(RuleError::UnknownCommand)?;
                let prefix = format!("{}|", entry.command.name);
                let is_meant = |command: &table::Command| {
                    std::ptr::eq(command, entry.command) || command.name.starts_with(&prefix)
                };
                self.commands.set_where(allowed, is_meant);
                self.all_commands &= allowed;
            }
        }
        self.note_rule(allowed, &String::from_utf8_lossy(&name));
        Ok(())
    }

    /// Adds the rule to the list, replacing an earlier rule for the same name.
    fn note_rule(&mut self, allowed: bool, name: &str) {
        self.command_rules.retain(|rule| rule[1..] != *name);
        if allowed || name != "@all" {
            self.command_rules.push(format!("{}{name}", if allowed { '+' } else { '-' }));
        }
    }
}

/// Returns whether a name or pattern can be written to an ACL file and read back unchanged.
pub fn is_word(text: &[u8]) -> bool {
    // The characters of C's `isspace`, and 0, as in Redis.
    let splits = |byte: &u8| matches!(byte, 0 | 9..=13 | b' ');
    !text.iter().any(splits) && str::from_utf8(text).is_ok()
}

fn checked(pattern: &[u8]) -> Result<&[u8], RuleError> {
    if is_word(pattern) { Ok(pattern) } else { Err(RuleError::Syntax) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(rules: &str) -> User {
        let mut user = User::new("ada");
        rules.split(' ').for_each(|rule| user.apply(rule.as_bytes()).expect("a known rule"));
        user
    }

    fn may(user: &User, name: &str) -> bool {
        let entry = table::by_name(name.as_bytes()).expect("a known command");
        user.selector.commands.contains(entry.number)
    }

    #[test]
    fn rules_come_one_after_the_other() {
        let ada = user("on +@all -@dangerous +info");
        assert!(may(&ada, "get") && may(&ada, "info") && !may(&ada, "flushall") && !may(&ada, "config|set"));
        assert!(!ada.selector.all_commands);
        let ada = user("+@string -set +config|get");
        assert!(may(&ada, "append") && !may(&ada, "set") && may(&ada, "config|get") && !may(&ada, "config|set"));
        assert_eq!(ada.selector.commands_text(), "-@all +@string -set +config|get");
        let ada = user("+get -@all");
        assert!(!may(&ada, "get"));
        assert_eq!(ada.selector.commands_text(), "-@all");
    }

    #[test]
    fn line_makes_same_user() {
        let ada = user("on >secret ~k:* %R~r:* &news +@read -get");
        let line = ada.line();
        let again = user(line.strip_prefix("user ada ").expect("its name"));
        assert_eq!(again.line(), line);
        assert!(again.has_password(b"secret") && !again.has_password(b"other"));
    }

    #[test]
    fn rule_that_comes_again_is_there_once() {
        let ada = user("&news ~k &news %R~k >secret >secret");
        assert_eq!(ada.line(), user(">secret ~k &news").line());
    }

    #[test]
    fn invalid_rule_is_refused() {
        let mut ada = user("~*");
        assert_eq!((ada.apply(b""), ada.line()), (Ok(()), user("~*").line()));
        assert_eq!(ada.apply(b"~k"), Err(RuleError::KeysAreAll));
        assert_eq!(ada.apply(b"+nothing"), Err(RuleError::UnknownCommand));
        assert_eq!(ada.apply(b"+@nothing"), Err(RuleError::UnknownCategory));
        assert_eq!(ada.apply(b"#12"), Err(RuleError::BadHash));
        assert_eq!(ada.apply(b"%X~k"), Err(RuleError::Syntax));
        assert_eq!(ada.apply(b"what"), Err(RuleError::Syntax));
        ada.apply(b"resetkeys").expect("a known rule");
        for rule in [&b"~a b"[..], b"%R~a\nuser eve on nopass ~* +@all", b"&\xff", b"~\0"] {
            assert_eq!(ada.apply(rule), Err(RuleError::Syntax), "{}", rule.escape_ascii());
        }
        assert_eq!(ada.apply(b"<secret"), Err(RuleError::NoSuchPassword));
    }
}
