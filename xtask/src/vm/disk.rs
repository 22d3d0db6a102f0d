//! A disk with a volatile write cache for a guest: an NBD server whose memory is lost at a power cut.
//!
//! Reads return written data immediately. A write is durable once a later flush was answered. A cut keeps, loses, or
//! tears (between sectors) each write since then independently, so that later writes may survive earlier ones.
//!
//! The protocol is fixed newstyle NBD with simple replies, as far as QEMU's client needs it.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

const SECTOR_BYTES: usize = 512;
const IHAVEOPT: u64 = 0x4948_4156_454f_5054;
const OPTION_REPLY: u64 = 0x0003_e889_0455_65a9;
const REQUEST: u32 = 0x2560_9513;
const SIMPLE_REPLY: u32 = 0x6744_6698;
const OPT_EXPORT_NAME: u32 = 1;
const OPT_ABORT: u32 = 2;
const OPT_GO: u32 = 7;
/// The flags are valid; the disk supports flushes.
const EXPORT_FLAGS: u16 = 1 | 4;

/// Sectors that are not zero.
#[derive(Clone, Default)]
pub(super) struct Image(HashMap<u64, [u8; SECTOR_BYTES]>);

impl Image {
    pub(super) fn of(bytes: &[u8]) -> Image {
        let mut image = Image::default();
        for (number, sector) in (0..).zip(bytes.chunks_exact(SECTOR_BYTES)) {
            if sector.iter().any(|&byte| byte != 0) {
                image.0.insert(number, sector.try_into().expect("a sector"));
            }
        }
        image
    }

    fn write(&mut self, first: u64, bytes: &[u8]) {
        for (number, sector) in (first..).zip(bytes.chunks_exact(SECTOR_BYTES)) {
            self.0.insert(number, sector.try_into().expect("a sector"));
        }
    }

    fn read(&self, first: u64, bytes: &mut [u8]) {
        for (number, sector) in (first..).zip(bytes.chunks_exact_mut(SECTOR_BYTES)) {
            sector.copy_from_slice(self.0.get(&number).unwrap_or(&[0; SECTOR_BYTES]));
        }
    }
}

/// The honesty of a disk about flushes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Disk {
    Honest,
    /// The broken variant: reports each flush as done and does nothing.
    IgnoresFlushes,
}

struct State {
    disk: Disk,
    seen: Image,
    durable: Image,
    /// Writes in the order of the requests: the first sector, and the data.
    cached: Vec<(u64, Vec<u8>)>,
    is_cut: bool,
}

/// A disk that is served at a socket.
pub(super) struct Served(Arc<Mutex<State>>);

impl Served {
    /// Serves one guest.
    pub(super) fn start(image: Image, len_bytes: u64, disk: Disk, socket: &Path) -> io::Result<Served> {
        let listener = UnixListener::bind(socket)?;
        let state = State { disk, seen: image.clone(), durable: image, cached: Vec::new(), is_cut: false };
        let served = Served(Arc::new(Mutex::new(state)));
        let shared = Arc::clone(&served.0);
        // Ends with the guest's connection, which closes when the guest ends.
        thread::spawn(move || listener.accept().and_then(|(stream, _)| serve(stream, len_bytes, &shared)));
        Ok(served)
    }

    /// Cuts the power: no request is answered any more. Returns the remaining contents.
    pub(super) fn cut(&self, random: &mut impl FnMut() -> u64) -> Image {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.is_cut = true;
        let mut left = state.durable.clone();
        for (first, bytes) in &state.cached {
            match random() % 3 {
                0 => {}
                1 => left.write(*first, bytes),
                _ => torn(&mut left, *first, bytes, random),
            }
        }
        left
    }
}

fn torn(left: &mut Image, first: u64, bytes: &[u8], random: &mut impl FnMut() -> u64) {
    for (number, sector) in (first..).zip(bytes.chunks_exact(SECTOR_BYTES)) {
        if random().is_multiple_of(2) {
            left.write(number, sector);
        }
    }
}

fn serve(mut stream: UnixStream, len_bytes: u64, state: &Mutex<State>) -> io::Result<()> {
    greet(&mut stream, len_bytes)?;
    loop {
        let mut request = [0; 28];
        stream.read_exact(&mut request)?;
        let word = |at: usize| u64::from_be_bytes(request[at..at + 8].try_into().expect("eight bytes"));
        let half = |at: usize| u32::from_be_bytes(request[at..at + 4].try_into().expect("four bytes"));
        if half(0) != REQUEST {
            return Err(io::Error::other("not a request"));
        }
        let (kind, cookie, first, len) = (half(4) & 0xFFFF, word(8), word(16) / SECTOR_BYTES as u64, half(24) as usize);
        let mut bytes = vec![0; if kind < 2 { len } else { 0 }];
        if kind == 1 {
            stream.read_exact(&mut bytes)?;
        }
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.is_cut {
            return Ok(());
        }
        match kind {
            0 => state.seen.read(first, &mut bytes),
            1 => {
                state.seen.write(first, &bytes);
                state.cached.push((first, std::mem::take(&mut bytes)));
            }
            2 => return Ok(()),
            3 if state.disk == Disk::Honest => {
                for (first, bytes) in std::mem::take(&mut state.cached) {
                    state.durable.write(first, &bytes);
                }
            }
            _ => {}
        }
        // Sent under the lock, so that a cut before the reply suppresses it.
        let mut reply = [&SIMPLE_REPLY.to_be_bytes()[..], &[0; 4], &cookie.to_be_bytes()].concat();
        reply.append(&mut bytes);
        stream.write_all(&reply)?;
    }
}

/// Carries out the handshake, up to the first request.
fn greet(stream: &mut UnixStream, len_bytes: u64) -> io::Result<()> {
    // Fixed newstyle; no padding.
    stream.write_all(&[b"NBDMAGIC", &IHAVEOPT.to_be_bytes()[..], &[0, 3]].concat())?;
    stream.read_exact(&mut [0; 4])?;
    let export = [&len_bytes.to_be_bytes()[..], &EXPORT_FLAGS.to_be_bytes()].concat();
    loop {
        let mut head = [0; 16];
        stream.read_exact(&mut head)?;
        let half = |at: usize| u32::from_be_bytes(head[at..at + 4].try_into().expect("four bytes"));
        let (option, mut data) = (half(8), vec![0; half(12) as usize]);
        stream.read_exact(&mut data)?;
        match option {
            OPT_EXPORT_NAME => return stream.write_all(&export),
            OPT_GO => {
                answer(stream, option, 3, &[&[0, 0], &export[..]].concat())?;
                return answer(stream, option, 1, &[]);
            }
            OPT_ABORT => return Err(io::Error::other("the client left")),
            _ => answer(stream, option, 1 << 31 | 1, &[])?,
        }
    }
}

fn answer(stream: &mut UnixStream, option: u32, kind: u32, data: &[u8]) -> io::Result<()> {
    let head = [&OPTION_REPLY.to_be_bytes()[..], &option.to_be_bytes(), &kind.to_be_bytes()].concat();
    stream.write_all(&[&head[..], &(data.len() as u32).to_be_bytes(), data].concat())
}
