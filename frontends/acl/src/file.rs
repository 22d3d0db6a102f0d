//! The ACL file: one line `user NAME RULES…` per user.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pmem_os::WholeFile;

use super::user::User;

/// Reads a text file.
pub type ReadText = fn(&Path) -> io::Result<String>;

/// The file that users are read from and saved to.
pub struct AclFile {
    path: PathBuf,
    read_text: ReadText,
}

impl AclFile {
    /// Names the file; `read_text` reads it.
    #[must_use]
    pub fn new(path: PathBuf, read_text: ReadText) -> AclFile {
        AclFile { path, read_text }
    }

    /// Reads all users. One invalid line rejects the file.
    pub fn read(&self) -> io::Result<BTreeMap<String, Arc<User>>> {
        let path = self.path.display();
        let text =
            (self.read_text)(&self.path).map_err(|error| io::Error::new(error.kind(), format!("{path}: {error}")))?;
        let mut users = BTreeMap::new();
        for (number, line) in text.lines().map(str::trim).enumerate() {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let user = user_of(line)
                .map_err(|what| io::Error::new(io::ErrorKind::InvalidData, format!("{path}:{}: {what}", number + 1)))?;
            users.insert(user.name.clone(), Arc::new(user));
        }
        Ok(users)
    }

    /// Replaces all users of the file atomically.
    pub fn write(&self, users: &[Arc<User>]) -> io::Result<()> {
        let lines: String = users.iter().map(|user| user.line() + "\n").collect();
        WholeFile::replace(&self.path, lines.as_bytes())
    }
}

/// Parses a line `user NAME RULES…`. An error message contains no password.
pub fn user_of(line: &str) -> Result<User, String> {
    let mut words = line.split_ascii_whitespace();
    if words.next() != Some("user") {
        return Err("line does not begin with 'user'".into());
    }
    let mut user = User::new(words.next().ok_or("missing user name")?);
    for rule in words {
        user.apply(rule.as_bytes()).map_err(|error| match rule.as_bytes() {
            // A password must not get into logs.
            [b'>' | b'<' | b'#' | b'!', ..] => error.text().to_owned(),
            _ => format!("'{rule}': {}", error.text()),
        })?;
    }
    Ok(user)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn written_values_are_read_back() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let file = AclFile::new(dir.path().join("users.acl"), |path| fs::read_to_string(path));
        fs::write(&file.path, "").expect("the file is made");
        let ada = Arc::new(user_of("user ada on >pw ~a* &* +@read").expect("a user"));
        file.write(&[Arc::clone(&ada)]).expect("the file is written");
        let users = file.read().expect("the file is read");
        assert_eq!(users["ada"].line(), ada.line());
    }

    #[test]
    fn wrong_line_is_named_without_its_password() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("users.acl");
        fs::write(&path, "# users\nuser ada on +nothing\n").expect("the file is written");
        let error = AclFile::new(path.clone(), |path| fs::read_to_string(path))
            .read()
            .err()
            .expect("no such command")
            .to_string();
        assert!(error.contains(":2: '+nothing'"), "{error}");
        fs::write(&path, "user ada <hush\n").expect("the file is written");
        let error =
            AclFile::new(path, |path| fs::read_to_string(path)).read().err().expect("no such password").to_string();
        assert!(!error.contains("hush"), "{error}");
    }
}
