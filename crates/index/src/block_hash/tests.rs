//! What the table owes to readers in moments that only its own volatile words tell apart.

mod batches;
