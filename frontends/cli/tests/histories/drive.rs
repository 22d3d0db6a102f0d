//! Clients that send random requests through several lives of one server, and a history of the replies.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread;

use fastrand::Rng;
use testkit::{Anomaly, Call, Clock, History, Recorder, Stamped, Write};

use crate::On;
use crate::client::{Answer, Client};
use crate::process::Process;

/// The fault that a broken variant injects into the store while no server runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Undone {
    Nothing,
    /// Restores the store's files from before the last life but one.
    LifeBeforeLast,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Trial {
    pub(crate) on: On,
    pub(crate) client_count: u64,
    /// The number of times that the server is started and killed.
    pub(crate) life_count: u64,
    /// Upper bound of the replies in a life.
    pub(crate) answers_max: u64,
    pub(crate) key_count: u64,
    pub(crate) undone: Undone,
    pub(crate) seed: u64,
}

impl Trial {
    /// Runs the trial and checks its history. Returns the number of events.
    pub(crate) fn judge(&self) -> Result<u64, Anomaly> {
        let (home, clock, put_count) = (self.on.home(), Clock::default(), AtomicU64::new(0));
        let (store, kept) = (home.path().join("store"), home.path().join("kept"));
        let (mut rng, mut recorders) = (Rng::with_seed(self.seed), Vec::new());
        for life in 0..self.life_count {
            if self.undone == Undone::LifeBeforeLast && life + 2 == self.life_count {
                copy(&store, &kept);
            }
            if self.undone == Undone::LifeBeforeLast && life + 1 == self.life_count {
                copy(&kept, &store);
            }
            let answer_count = rng.u64(self.answers_max / 2..self.answers_max);
            recorders.extend(self.life(&store, &clock, &put_count, answer_count, rng.u64(..)));
        }
        let server = Process::serve(&store);
        recorders.push(read_all(server.addr, self.key_count, &clock));
        server.kill();
        recorders.into_iter().collect::<History>().judge()
    }

    /// Runs one life of the server, which is killed after `answer_count` replies.
    fn life<'a>(
        &self,
        store: &Path,
        clock: &'a Clock,
        put_count: &AtomicU64,
        answer_count: u64,
        seed: u64,
    ) -> Vec<Recorder<'a>> {
        let server = Process::serve(store);
        let (answered, answers) = channel();
        thread::scope(|scope| {
            let clients: Vec<_> = (0..self.client_count)
                .map(|number| {
                    let asking = Asking {
                        key_count: self.key_count,
                        put_count,
                        rng: Rng::with_seed(seed ^ number),
                        recorder: Recorder::new(clock),
                        seen: None,
                        answered: answered.clone(),
                    };
                    let addr = server.addr;
                    scope.spawn(move || asking.run(addr))
                })
                .collect();
            drop(answered);
            assert_eq!(answers.iter().take(answer_count as usize).count() as u64, answer_count, "clients gave up");
            server.kill();
            clients.into_iter().map(|client| client.join().expect("a client does not panic")).collect()
        })
    }
}

/// Replaces the directory `to` by a copy of the files in `from`.
fn copy(from: &Path, to: &Path) {
    let _ = fs::remove_dir_all(to);
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

fn read_all(addr: SocketAddr, key_count: u64, clock: &Clock) -> Recorder<'_> {
    let (mut recorder, mut client) = (Recorder::new(clock), Client::connect(addr).unwrap());
    for key in 0..key_count {
        recorder.record(|| Ok::<_, io::Error>([(key, Call::Get(get(&mut client, key)?))])).expect("an answer");
    }
    recorder
}

fn name(key: u64) -> [u8; 8] {
    key.to_be_bytes()
}

/// Returns the number of the put that wrote the key's value.
fn get(client: &mut Client, key: u64) -> io::Result<Option<u64>> {
    match client.call(&[b"GET", &name(key)])? {
        Answer::Value(value) => Ok(value.map(|value| put_of(key, &value))),
        other => panic!("GET is answered {other:?}"),
    }
}

fn put_of(key: u64, value: &[u8]) -> u64 {
    let stamped = Stamped::read(value).unwrap_or_else(|| panic!("key {key} has a value that no client put"));
    assert_eq!(stamped.key, key, "a key has the value of another");
    stamped.put
}

/// A client, which runs until its server is killed.
struct Asking<'a, 'c> {
    key_count: u64,
    /// Counts the puts of all clients.
    put_count: &'a AtomicU64,
    rng: Rng,
    recorder: Recorder<'c>,
    /// The key that this client read last, with the put and the value that it read.
    seen: Option<(u64, u64, Vec<u8>)>,
    answered: Sender<()>,
}

/// The server was killed.
struct Gone;

impl<'c> Asking<'_, 'c> {
    fn run(mut self, addr: SocketAddr) -> Recorder<'c> {
        // The server may be gone already.
        if let Ok(mut client) = Client::connect(addr) {
            while self.ask(&mut client).is_ok() {
                // An error means that the receiver has counted enough replies, and the kill follows.
                let _ = self.answered.send(());
            }
        }
        self.recorder
    }

    fn ask(&mut self, client: &mut Client) -> Result<(), Gone> {
        let key = self.rng.u64(..self.key_count);
        match self.rng.u8(..100) {
            0..35 => self.put(client, key),
            35..45 => self.delete(client, key),
            45..60 => self.swap(client),
            _ => self.get(client, key),
        }
    }

    fn new_value(&mut self, key: u64) -> (u64, Vec<u8>) {
        let put = self.put_count.fetch_add(1, Ordering::Relaxed);
        (put, Stamped { key, put }.value(self.rng.usize(..300)))
    }

    /// Sends a write. A write without a reply is also in the history.
    fn write(
        &mut self,
        client: &mut Client,
        key: u64,
        request: &[&[u8]],
        write: Write,
        call: impl FnOnce(Answer) -> Call,
    ) -> Result<(), Gone> {
        let mut outcome = Ok(());
        let recorded = self.recorder.record(|| {
            let answer = client.call(request);
            outcome = answer.as_ref().map_or(Err(Gone), |_| Ok(()));
            Ok::<_, Gone>([(key, answer.map_or(Call::Unanswered(write), call))])
        });
        recorded.and(outcome)
    }

    fn put(&mut self, client: &mut Client, key: u64) -> Result<(), Gone> {
        let (put, value) = self.new_value(key);
        self.write(client, key, &[b"SET", &name(key), &value], Write::Put(put), |answer| {
            assert_eq!(answer, Answer::Line("OK".into()));
            Call::Put(put)
        })
    }

    fn delete(&mut self, client: &mut Client, key: u64) -> Result<(), Gone> {
        self.write(client, key, &[b"DEL", &name(key)], Write::Delete, |answer| {
            Call::Delete(answer == Answer::Number(1))
        })
    }

    /// Replaces the value of the key that this client read last, if the value is still the same.
    fn swap(&mut self, client: &mut Client) -> Result<(), Gone> {
        let Some((key, seen, old)) = self.seen.take() else { return Ok(()) };
        let (put, new) = self.new_value(key);
        let request: [&[u8]; 4] = [b"CAS", &name(key), &old, &new];
        self.write(client, key, &request, Write::Swap(Some(seen), Some(put)), |answer| {
            Call::Swap(Some(seen), Some(put), answer == Answer::Number(1))
        })
    }

    fn get(&mut self, client: &mut Client, key: u64) -> Result<(), Gone> {
        let seen = &mut self.seen;
        self.recorder.record(|| {
            let Ok(Answer::Value(value)) = client.call(&[b"GET", &name(key)]) else { return Err(Gone) };
            let put = value.as_deref().map(|value| put_of(key, value));
            *seen = put.zip(value).map(|(put, value)| (key, put, value));
            Ok([(key, Call::Get(put))])
        })
    }
}
