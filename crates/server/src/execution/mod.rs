//! From a request to its reply.

pub(crate) mod call;
pub(crate) mod claims;
pub(crate) mod cross_protocol;
pub(crate) mod dispatch;
pub(crate) mod errands;
pub(crate) mod gate;
pub(crate) mod pause;
pub(crate) mod pipeline;
pub(crate) mod reads;
pub(crate) mod writes;
