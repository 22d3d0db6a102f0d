//! Client connections: listening, accepting, the event loops, and the input and output of each connection.

pub(crate) mod accept;
pub(crate) mod adaptive_poll;
pub(crate) mod admission;
pub(crate) mod backlog;
pub(crate) mod buffers;
pub(crate) mod connection;
pub(crate) mod event_loop;
pub(crate) mod held;
pub(crate) mod idle;
pub(crate) mod input;
pub(crate) mod listen;
mod order_maintenance;
pub(crate) mod output;
pub(crate) mod transport;
pub(crate) mod unix;
