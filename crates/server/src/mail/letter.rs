//! What event loops tell each other.

use std::sync::Arc;

use super::parcel::Parcel;
use crate::clients::{Peer, Place};
use crate::connections::admission::Admission;
use crate::connections::transport::Transport;
use crate::execution::errands::desk::Done;

pub(crate) enum Letter {
    /// A new client.
    Arrival(Transport, Peer, Admission),
    /// The reply to a client that was away.
    Done(Place, Box<Done>),
    /// A message for clients of this loop.
    Parcel { receivers: Vec<Place>, parcel: Arc<Parcel> },
    /// A client's connection is to be closed.
    Close(Place),
}
