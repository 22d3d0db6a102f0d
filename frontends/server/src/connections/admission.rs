//! The limit on the number of clients.

use crate::telemetry::Loops;

/// A client's slot on one loop; dropping it frees the slot.
pub(crate) struct Admission {
    loops: Loops,
    pub(crate) loop_index: usize,
    /// Client IDs are assigned in order of arrival.
    pub(crate) client_id: u64,
}

impl Admission {
    /// Reserves a slot on the loop with the fewest clients; `None` if there are `clients_max`. Only the accepting loop
    /// calls this, so the limit holds without a lock.
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
