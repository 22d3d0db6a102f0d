//! A server without clients, for tests of what only its own modules see.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use hikv::pool::Sharing;
use hikv::{Durability, Options};
use tempfile::TempDir;

use crate::clients::session::Session;
use crate::clients::{Peer, Place, Record};
use crate::shared::Shared;
use crate::{Config, Server, StopHandle};

/// A server with two event loops, which do not run, on a new store.
pub(crate) fn server() -> (Server, TempDir) {
    server_with(Sharing::Beside)
}

/// As [`server`], of loops that share the work so. Only they and the caller apply: the store has no threads of its own.
pub(crate) fn server_with(split: Sharing) -> (Server, TempDir) {
    let dir = tempfile::tempdir().expect("a directory");
    let store = Options::new().durability(Durability::Buffered).background(false).open(dir.path()).expect("it opens");
    let config = Config { addrs: vec!["127.0.0.1:0".into()], threads: 2, split, ..Config::default() };
    (Server::bind(store, config, StopHandle::new()).expect("a free port binds"), dir)
}

/// A client of the first loop.
pub(crate) fn session(shared: &Shared) -> Session {
    let addr = Peer::Ip(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
    let place = Place { loop_index: 0, key: 0, client_id: 1 };
    shared.welcome(Arc::new(Record::new(place, addr.clone(), addr)))
}
