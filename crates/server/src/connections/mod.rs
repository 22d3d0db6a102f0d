//! Client connections: listening, accepting, the event loops, and the input and output of each connection.

pub(crate) mod accept;
pub(crate) mod admission;
pub(crate) mod backlog;
pub(crate) mod buffers;
pub(crate) mod connection;
mod duty;
pub(crate) mod event_loop;
pub(crate) mod held;
pub(crate) mod idle;
pub(crate) mod input;
pub(crate) mod listen;
pub(crate) mod output;
pub(crate) mod patience;
pub(crate) mod transport;
pub(crate) mod unix;
