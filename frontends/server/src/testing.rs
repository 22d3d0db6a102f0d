//! A server without clients, for unit tests of internal modules.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use hikv::pool::Sharing;
use hikv::{Durability, Options};
use tempfile::TempDir;

use crate::clients::session::Session;
use crate::clients::{Peer, Place, Record};
use crate::shared::Shared;
use crate::{Config, Server, StopHandle};

/// Creates a server with two event loops, which do not run, on a new store.
pub(crate) fn server() -> (Server, TempDir) {
    server_with(Sharing::Beside)
}

/// Like [`server`], with loops that share the work by `split`. Only they and the caller apply changes: the store has no
/// threads.
pub(crate) fn server_with(split: Sharing) -> (Server, TempDir) {
    let dir = tempfile::tempdir().expect("a directory");
    let store = Options::new().durability(Durability::Buffered).background(false).open(dir.path()).expect("it opens");
    let config = Config { addrs: vec!["127.0.0.1:0".into()], threads: 2, split, ..Config::default() };
    (Server::bind(store, config, StopHandle::new()).expect("a free port binds"), dir)
}

/// Creates a session of the first loop.
pub(crate) fn session(shared: &Shared) -> Session {
    let addr = Peer::Ip(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
    let place = Place { loop_index: 0, key: 0, client_id: 1 };
    shared.new_session(Arc::new(Record::new(place, addr.clone(), addr)))
}
