//! Users and their rights, as in Redis.
//!
//! A session caches its user with the version of the user table. Every change increments the version, so an unchanged
//! table costs a session one load.

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

pub use file::{AclFile, ReadText, user_of};
pub use log::{Context, Log, LogEntry, Reason};
pub use password::random_hex;
pub use rules::is_word;
pub use user::User;

/// The user of every new client.
pub const DEFAULT_USER: &str = "default";

/// The user that a client has logged in as; none at first if a password is required.
#[derive(Clone, Default)]
pub struct Login {
    user: Option<Arc<User>>,
    version: u64,
}

impl Login {
    /// Returns the user's name; the default user's name if the client is not logged in.
    pub fn name(&self) -> &str {
        self.user.as_ref().map_or(DEFAULT_USER, |user| &user.name)
    }

    /// Returns the user, if the client is logged in.
    pub fn user(&self) -> Option<&User> {
        self.user.as_deref()
    }
}

/// The table of users.
pub struct Acl {
    users: Mutex<BTreeMap<String, Arc<User>>>,
    version: AtomicU64,
    file: Option<AclFile>,
    /// Denied requests.
    pub log: Log,
}

impl Acl {
    /// Creates the table of these users, saved in `file` if there is one. The default user always exists.
    pub fn of(users: BTreeMap<String, Arc<User>>, file: Option<AclFile>) -> Acl {
        let acl = Acl { users: Mutex::default(), version: AtomicU64::new(1), file, log: Log::default() };
        *acl.users.lock() = with_default(users);
        acl
    }

    /// Sets the default user's only password. If `password` is empty, the user needs none.
    pub fn require_password(&self, password: &[u8]) {
        let mut default = (*self.user(DEFAULT_USER).expect("there is always a default user")).clone();
        default.set_password(password);
        self.put(default);
    }

    /// Returns whether a client may do everything without a password.
    pub fn is_open(&self) -> bool {
        self.user(DEFAULT_USER).is_some_and(|user| user.is_enabled && user.needs_no_password)
    }

    /// Returns the login of a new client.
    pub fn initial_login(&self) -> Login {
        let default = self.user(DEFAULT_USER).filter(|user| user.is_enabled && user.needs_no_password);
        Login { user: default, version: self.version.load(Ordering::Acquire) }
    }

    /// Returns the login of the user with this name and password.
    pub fn authenticate(&self, name: &[u8], password: &[u8]) -> Option<Login> {
        let version = self.version.load(Ordering::Acquire);
        let user = str::from_utf8(name).ok().and_then(|name| self.user(name));
        // An unknown name takes as long as a wrong password, so that timing does not reveal names.
        let stranger = User::new("");
        let is_right = user.as_deref().unwrap_or(&stranger).has_password(password);
        user.filter(|user| is_right && user.is_enabled).map(|user| Login { user: Some(user), version })
    }

    /// Refreshes a login; returns false if its user was deleted.
    #[inline]
    pub fn refresh(&self, login: &mut Login) -> bool {
        self.version.load(Ordering::Acquire) == login.version || self.reload(login)
    }

    #[cold]
    fn reload(&self, login: &mut Login) -> bool {
        login.version = self.version.load(Ordering::Acquire);
        let Some(old) = &login.user else { return true };
        login.user = self.user(&old.name);
        login.user.is_some()
    }

    /// Returns the user with this name.
    pub fn user(&self, name: &str) -> Option<Arc<User>> {
        self.users.lock().get(name).cloned()
    }

    /// Returns the name, if a user has it.
    pub fn known<'a>(&self, name: &'a [u8]) -> Option<&'a str> {
        str::from_utf8(name).ok().filter(|name| self.user(name).is_some())
    }

    /// Returns all users in the order of their names.
    pub fn all(&self) -> Vec<Arc<User>> {
        self.users.lock().values().cloned().collect()
    }

    /// Returns each user as a line of an ACL file.
    pub fn lines(&self) -> Vec<String> {
        self.users.lock().values().map(|user| user.line()).collect()
    }

    /// Adds or replaces a user.
    pub fn put(&self, user: User) {
        self.users.lock().insert(user.name.clone(), Arc::new(user));
        self.version.fetch_add(1, Ordering::Release);
    }

    /// Deletes a user; returns false if it did not exist.
    pub fn delete(&self, name: &str) -> bool {
        let deleted = self.users.lock().remove(name).is_some();
        self.version.fetch_add(1, Ordering::Release);
        deleted
    }

    /// Returns the file of users, if there is one.
    pub fn file(&self) -> Option<&AclFile> {
        self.file.as_ref()
    }

    /// Replaces all users.
    pub fn replace(&self, users: BTreeMap<String, Arc<User>>) {
        *self.users.lock() = with_default(users);
        self.version.fetch_add(1, Ordering::Release);
    }
}

fn with_default(mut users: BTreeMap<String, Arc<User>>) -> BTreeMap<String, Arc<User>> {
    users.entry(DEFAULT_USER.into()).or_insert_with(|| Arc::new(User::open_default()));
    users
}
