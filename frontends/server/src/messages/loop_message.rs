//! Messages between event loops.

use std::sync::Arc;

use super::client_message::ClientMessage;
use crate::clients::{Peer, Place};
use crate::connections::admission::Admission;
use crate::connections::transport::Transport;
use crate::execution::background::client_state::JobResult;

pub(crate) enum LoopMessage {
    /// A new client.
    Arrival(Transport, Peer, Admission),
    /// The result of a background job.
    JobDone(Place, Box<JobResult>),
    /// A message for clients of this loop.
    Deliver { receivers: Vec<Place>, message: Arc<ClientMessage> },
    /// The client has received all messages that were sent to it before this one.
    AllReceived(Place),
    /// The wait of a client has ended; its waiter has the reply.
    WaitOver(Place),
    /// A request to close a client's connection.
    Close(Place),
}
