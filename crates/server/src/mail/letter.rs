//! Messages between event loops.

use std::sync::Arc;

use super::parcel::Parcel;
use crate::clients::{Peer, Place};
use crate::connections::admission::Admission;
use crate::connections::transport::Transport;
use crate::execution::errands::desk::Done;

pub(crate) enum Letter {
    /// A new client.
    Arrival(Transport, Peer, Admission),
    /// The result of a background job.
    Done(Place, Box<Done>),
    /// A message for clients of this loop.
    Parcel { receivers: Vec<Place>, parcel: Arc<Parcel> },
    /// A request to close a client's connection.
    Close(Place),
}
