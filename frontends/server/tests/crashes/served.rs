//! A server of a store on a crashable medium, as the explorer uses it.
//!
//! The first key of a batch names a command, which the server executes; the others are the changes that the oracle
//! expects of it. Puts and deletes are those of strings of the first database. `clear` is `FLUSHALL`, and `settle` is a
//! pass of the background, which must leave no dead element.

use std::cell::RefCell;
use std::env;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use catalog::{Catalog, Space, TreeId, database_name};
use engine::{Check, Clock, Depth, Engine, Expires, Maintenance, Progress, Walks, Writes};
use engine_hikv::{HiKv, Ordered};
use heap::Parameters;
use hikv::Options;
use parking_lot::Mutex;
use pmem::Backoff;
use pmem_os::HostDram;
use server::{Config, InProcess};
use testkit::{Failure, Operations, Over, Subject};

use crate::broken::{Broken, Way};
use crate::stored::Stored;

/// Space for the head, one chunk of segments, and a few chunks of items.
pub(crate) const REGION_BYTES: u64 = (2 << 20) + (512 << 10);
const PARAMETERS: Parameters =
    Parameters { uuid: [7; 16], hash_seed: 7, partition_count: 1, region_bytes: REGION_BYTES };

thread_local! {
    /// The clock of this thread's stores. A script and the images of its crashes are examined by one thread.
    static CLOCK: RefCell<Clock> = RefCell::new(Clock::manual(0));
}

fn now() -> Clock {
    CLOCK.with_borrow(Clock::clone)
}

fn refused(error: impl std::fmt::Display) -> Failure {
    Failure::Other(error.to_string())
}

/// A store, and the server that executes commands on it from the first one on.
pub(crate) struct Served<M: Over, W> {
    engine: Arc<HiKv<M, HostDram>>,
    server: Mutex<Option<InProcess>>,
    way: PhantomData<W>,
}

impl<M: Over, W: Way> Served<M, W> {
    fn of(engine: HiKv<M, HostDram>) -> Self {
        let engine = engine.by_clock(now()).keeping_order(Ordered::new(1, HostDram));
        Served { engine: Arc::new(engine), server: Mutex::default(), way: PhantomData }
    }

    fn stored(&self) -> Result<Stored, Failure> {
        Ok(Stored::of(&*self.engine)?)
    }

    fn with_server<R>(&self, act: impl FnOnce(&mut InProcess) -> Result<R, Failure>) -> Result<R, Failure> {
        let mut server = self.server.lock();
        if let Some(server) = &mut *server {
            return act(server);
        }
        let engine: Arc<dyn Engine> =
            if W::IS_SOUND { self.engine.clone() } else { Broken::<W>::over(self.engine.clone()) };
        // The directory stands for files that there are not.
        let store = Options::new().background(false).open_engine(&env::temp_dir(), engine).map_err(refused)?;
        let config = Config { addrs: vec!["127.0.0.1:0".into()], threads: 1, ..Config::default() };
        act(server.insert(InProcess::without_background(store, config).map_err(refused)?))
    }

    fn execute(&self, command: &[u8]) -> Result<(), Failure> {
        let input = [command, b"\r\n"].concat();
        let replies = self.with_server(|server| server.answer(&input).map_err(refused))?;
        let is_error = |line: &[u8]| matches!(line, [b'-', b'A'..=b'Z', ..]);
        match replies.split(|byte| *byte == b'\n').find(|line| is_error(line)) {
            Some(line) => Err(Failure::Other(line.escape_ascii().to_string())),
            None => Ok(()),
        }
    }

    /// Returns the strings of the first database.
    fn space(&self) -> Result<Space, Failure> {
        let catalog = Catalog::of(&*self.engine);
        if !catalog.is_begun()? {
            return Ok(Space::Whole);
        }
        let entry = catalog.find(&database_name(0))?;
        Ok(Space::of(entry.map_or(TreeId::NAMELESS, |entry| entry.id)))
    }

    /// Frees all garbage. Readers of other explorations can keep some of it, so this yields the processor to them.
    fn free_garbage(&self) {
        let mut backoff = Backoff::long();
        while self.engine.stats().garbage_count > 0 {
            self.engine.run_idle_maintenance();
            backoff.relax();
        }
    }

    fn reap(&self) -> Result<(), Failure> {
        while self.engine.step()? == Progress::More {}
        Ok(())
    }
}

impl<M: Over, W: Way> Operations for Served<M, W> {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Failure> {
        Ok(self.stored()?.contents().remove(key))
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Failure> {
        Ok(self.space()?.with_stored(key, |key| self.engine.put(key, value))?)
    }

    fn delete(&self, key: &[u8]) -> Result<bool, Failure> {
        Ok(self.space()?.with_stored(key, |key| self.engine.delete(key))?)
    }

    fn batch(&self, changes: &[(&[u8], Option<&[u8]>)]) -> Result<(), Failure> {
        let command = changes.first().and_then(|(key, _)| key.strip_prefix(crate::COMMAND));
        let command = command.ok_or_else(|| refused("no command"))?;
        if let Some(ms) = command.strip_prefix(b"AT ") {
            Self::set_time(str::from_utf8(ms).ok().and_then(|ms| ms.parse().ok()).ok_or_else(|| refused("no time"))?);
            return Ok(());
        }
        self.execute(command)
    }

    fn clear(&self) -> Result<(), Failure> {
        self.execute(b"FLUSHALL")
    }

    fn len(&self) -> Result<u64, Failure> {
        Ok(self.stored()?.contents().len() as u64)
    }

    fn for_each(&self, each: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), Failure> {
        self.stored()?.contents().iter().for_each(|(key, value)| each(key, value));
        Ok(())
    }

    fn check(&self) -> Result<Vec<String>, Failure> {
        let mut damage = self.stored()?.faults();
        let mut check = Check::new(Depth::Deep);
        while !check.is_done() {
            let mut damaged = |found: engine::Damage| damage.push(format!("{:#x}: {}", found.offset, found.what));
            self.engine.check(&mut check, &mut damaged)?;
        }
        catalog::check(&*self.engine, &mut |found| damage.push(found))?;
        Ok(damage)
    }
}

impl<M: Over, W: Way> Subject for Served<M, W> {
    type Medium = M::Medium;

    fn format(on: M::Medium) -> Result<Self, Failure> {
        Ok(Self::of(HiKv::format(M::make(on, &PARAMETERS)?, HostDram, &PARAMETERS)?))
    }

    fn open(on: M::Medium) -> Result<Self, Failure> {
        Ok(Self::of(HiKv::open(M::open(on)?, HostDram)?))
    }

    fn open_to_read(on: M::Medium) -> Option<Result<Self, Failure>> {
        Some(Self::open(on))
    }

    fn set_time(now_ms: u64) {
        CLOCK.with_borrow_mut(|clock| match now_ms.checked_sub(clock.now_ms()) {
            Some(ms) => clock.advance(Duration::from_millis(ms)),
            None => *clock = Clock::manual(now_ms),
        });
    }

    /// The server's store closes the engine.
    fn close(self) -> Result<(), Failure> {
        self.free_garbage();
        match self.server.into_inner() {
            Some(server) => drop(server),
            None => self.engine.close()?,
        }
        Ok(())
    }

    fn settle(&self) -> Result<(), Failure> {
        self.reap()?;
        let now_ms = self.engine.clock().now_ms();
        self.with_server(|server| server.reclaim(now_ms).map_err(refused))?;
        self.reap()?;
        self.free_garbage();
        self.engine.medium().settle()?;
        match self.stored()?.left_over() {
            left_over if left_over.is_empty() => Ok(()),
            left_over => Err(refused(format!("the background leaves {left_over:?}"))),
        }
    }
}
