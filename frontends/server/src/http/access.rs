//! Access to monitoring data: granted to users who may run `INFO`.

use std::net::SocketAddr;
use std::sync::LazyLock;

use super::request::Credentials;
use crate::shared::Shared;
use command_table::{self as table, Entry};

static INFO: LazyLock<Entry> = LazyLock::new(|| table::by_name(b"info").expect("there is INFO"));

#[derive(PartialEq, Eq, Debug)]
pub(super) enum Access {
    Granted,
    /// No valid user: a name and password are needed.
    Unknown,
    /// A user without the permission.
    Denied,
}

pub(super) fn access(credentials: &Credentials, addr: SocketAddr, shared: &Shared) -> Access {
    let login = match credentials {
        Credentials::None => Some(shared.administration.acl.initial_login()),
        Credentials::Basic(name, password) => shared.administration.acl.authenticate(name, password),
        Credentials::Unknown => None,
    };
    if login.is_none() {
        shared.administration.log.auth_failed("http", &addr, shared.administration.acl.known(credentials.name()));
    }
    match login.as_ref().and_then(|login| login.user()) {
        Some(user) if user.may_run(*INFO) => Access::Granted,
        Some(_) => Access::Denied,
        None => Access::Unknown,
    }
}
