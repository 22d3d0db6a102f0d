//! The bound on how many clients there are.

use crate::telemetry::Loops;

/// A client's place among as many as may be, on one loop; dropping it frees the place.
pub(crate) struct Admission {
    loops: Loops,
    pub(crate) loop_index: usize,
    /// Clients are numbered in the order they came.
    pub(crate) client_id: u64,
}

impl Admission {
    /// A place on the loop with the fewest clients; none if there are `clients_max`. Only the accepting loop calls it, so
    /// the limit holds without a lock.
    pub(crate) fn try_new(loops: &Loops, clients_max: usize) -> Option<Admission> {
        let (loop_index, client_id) = loops.admit(clients_max)?;
        Some(Admission { loops: loops.clone(), loop_index, client_id })
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        self.loops.dismiss(self.loop_index);
    }
}
