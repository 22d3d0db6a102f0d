//! From a request to its reply.

mod accounts;
pub(crate) mod call;
mod claims;
mod cross_protocol;
pub(crate) mod dispatch;
pub(crate) mod errands;
pub(crate) mod gate;
pub(crate) mod pause;
pub(crate) mod permission;
pub(crate) mod pipeline;
mod reads;
mod turn;
pub(crate) mod worker;
mod writes;
