//! From a request to its reply: a turn of a connection executes what waits in its pipeline, neighbours together (`reads`, `writes`) and
//! all others each as an `Execution` (`dispatch`); what takes long goes to `errands`. `gate` and `pause` say who waits for whom. What a
//! command gets is a `Call`.

pub(crate) mod accounts;
pub(crate) mod call;
pub(crate) mod claims;
mod cross_protocol;
pub(crate) mod dispatch;
pub(crate) mod errands;
pub(crate) mod gate;
pub(crate) mod panics;
pub(crate) mod pause;
pub(crate) mod permission;
pub(crate) mod pipeline;
mod reads;
mod turn;
pub(crate) mod worker;
mod writes;
