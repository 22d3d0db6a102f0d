//! Users and their rights, as in Redis.
//!
//! A session keeps a user as of its last look, with the version of the table; every change makes a new version, so an
//! unchanged table costs a session one load of a number.

mod file;
mod log;
mod password;
mod rules;
mod selector;
mod user;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

pub(crate) use file::{AclFile, user_of};
pub(crate) use log::{Log, LogEntry, Reason};
pub(crate) use password::random_hex;
pub(crate) use rules::is_word;
pub(crate) use user::User;

/// The user that every client is at first.
pub(crate) const DEFAULT_USER: &str = "default";

/// Whom a client has said to be; nobody at first, where a password is wanted.
#[derive(Clone, Default)]
pub(crate) struct Login {
    user: Option<Arc<User>>,
    version: u64,
}

impl Login {
    /// The user's name; that of the default user where it has not been authenticated.
    pub(crate) fn name(&self) -> &str {
        self.user.as_ref().map_or(DEFAULT_USER, |user| &user.name)
    }

    pub(crate) fn user(&self) -> Option<&User> {
        self.user.as_deref()
    }
}

pub(crate) struct Acl {
    users: Mutex<BTreeMap<String, Arc<User>>>,
    version: AtomicU64,
    file: Option<AclFile>,
    pub(crate) log: Log,
}

impl Acl {
    /// These users, kept up in `file` if there is one; the default user in any case.
    pub(crate) fn of(users: BTreeMap<String, Arc<User>>, file: Option<AclFile>) -> Acl {
        let acl = Acl { users: Mutex::default(), version: AtomicU64::new(1), file, log: Log::default() };
        *acl.users.lock() = with_default(users);
        acl
    }

    /// Makes the default user's one password this; none if it is empty, and the user then needs none.
    pub(crate) fn require_password(&self, password: &[u8]) {
        let mut default = (*self.user(DEFAULT_USER).expect("there is always a default user")).clone();
        default.set_password(password);
        self.put(default);
    }

    /// Whether a client may do everything without a password.
    pub(crate) fn is_open(&self) -> bool {
        self.user(DEFAULT_USER).is_some_and(|user| user.is_enabled && user.needs_no_password)
    }

    /// What a client is before it has said anything.
    pub(crate) fn initial_login(&self) -> Login {
        let default = self.user(DEFAULT_USER).filter(|user| user.is_enabled && user.needs_no_password);
        Login { user: default, version: self.version.load(Ordering::Acquire) }
    }

    /// The login of a user that has this password.
    pub(crate) fn authenticate(&self, name: &[u8], password: &[u8]) -> Option<Login> {
        let version = self.version.load(Ordering::Acquire);
        let user = str::from_utf8(name).ok().and_then(|name| self.user(name));
        // Somebody who guesses names takes as long as somebody who guesses passwords.
        let stranger = User::new("");
        let is_right = user.as_deref().unwrap_or(&stranger).has_password(password);
        user.filter(|user| is_right && user.is_enabled).map(|user| Login { user: Some(user), version })
    }

    /// Brings a login up to date; false if its user is there no more.
    #[inline]
    pub(crate) fn refresh(&self, login: &mut Login) -> bool {
        self.version.load(Ordering::Acquire) == login.version || self.look_again(login)
    }

    #[cold]
    fn look_again(&self, login: &mut Login) -> bool {
        login.version = self.version.load(Ordering::Acquire);
        let Some(old) = &login.user else { return true };
        login.user = self.user(&old.name);
        login.user.is_some()
    }

    pub(crate) fn user(&self, name: &str) -> Option<Arc<User>> {
        self.users.lock().get(name).cloned()
    }

    /// The name, if it is a user's.
    pub(crate) fn known<'a>(&self, name: &'a [u8]) -> Option<&'a str> {
        str::from_utf8(name).ok().filter(|name| self.user(name).is_some())
    }

    pub(crate) fn all(&self) -> Vec<Arc<User>> {
        self.users.lock().values().cloned().collect()
    }

    /// Every user as a line of a file.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.users.lock().values().map(|user| user.line()).collect()
    }

    /// Puts or replaces a user.
    pub(crate) fn put(&self, user: User) {
        self.users.lock().insert(user.name.clone(), Arc::new(user));
        self.version.fetch_add(1, Ordering::Release);
    }

    /// Deletes a user; false if there was none.
    pub(crate) fn delete(&self, name: &str) -> bool {
        let deleted = self.users.lock().remove(name).is_some();
        self.version.fetch_add(1, Ordering::Release);
        deleted
    }

    pub(crate) fn file(&self) -> Option<&AclFile> {
        self.file.as_ref()
    }

    /// Replaces all users.
    pub(crate) fn replace(&self, users: BTreeMap<String, Arc<User>>) {
        *self.users.lock() = with_default(users);
        self.version.fetch_add(1, Ordering::Release);
    }
}

fn with_default(mut users: BTreeMap<String, Arc<User>>) -> BTreeMap<String, Arc<User>> {
    users.entry(DEFAULT_USER.into()).or_insert_with(|| Arc::new(User::open_default()));
    users
}
