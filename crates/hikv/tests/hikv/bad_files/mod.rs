//! Files, places and processes that are not as a store needs them: each is answered with an error that says what and
//! where, nothing that was acknowledged is lost, and a file that is refused stays as it was.

mod absence;
mod aged;
mod campaign;
mod checks;
mod head;
mod image;
mod items;
mod level;
mod misplaced;
mod names;
mod paths;
mod processes;
mod repair;
mod segments;
mod skipped;
mod space;
mod stale;
mod store;
mod whole;
mod words;
