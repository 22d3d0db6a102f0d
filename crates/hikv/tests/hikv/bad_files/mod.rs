//! Unsuitable files, places and processes. Each causes an error that names the problem and its place, no acknowledged
//! write is lost, and a refused file does not change.

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
