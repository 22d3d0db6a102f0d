//! The library as programs use it. Tests that need a separate process or long load are in `alone` and `contention`.

mod backup;
mod bad_files;
mod cached;
mod compaction;
mod dumps;
mod engines;
mod expiry;
mod few;
mod full;
mod golden;
mod half_way;
mod journaled;
mod killed;
mod latest;
mod limits;
mod numbers;
mod ordered;
mod put_options;
mod ranges;
mod readme;
mod real_time;
mod standing;
mod texts;
mod thread_ends;
mod trees;
mod written_together;
