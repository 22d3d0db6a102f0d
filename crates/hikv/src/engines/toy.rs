//! Opens and creates stores of the toy engine.

use std::sync::Arc;

use engine::{Engine, OpenError};
use engine_toy::Toy;
use heap::Parameters;
use pmem::Medium;
use pmem_os::HostDram;

pub(super) fn format<M: Medium>(medium: M, parameters: &Parameters) -> Result<Arc<dyn Engine>, OpenError> {
    Ok(Arc::new(Toy::format(medium, HostDram, parameters)?))
}

pub(super) fn open<M: Medium>(medium: M) -> Result<Arc<dyn Engine>, OpenError> {
    Ok(Arc::new(Toy::open(medium, HostDram)?))
}
