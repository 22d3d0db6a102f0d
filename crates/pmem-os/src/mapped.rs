//! The direct medium: a file or DAX device mapped into the address space, where stores take effect immediately.
//!
//! No other process may shorten the file during that time; [`crate::StoreLock`] keeps well-behaved processes away.
//! Module `growth` describes growth, and `medium` implements the medium.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::AtomicU64;
use std::{fs, io};

use pmem::Durability;
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags};

use crate::backing::Backing;
use crate::collapse::SmallPages;
use crate::durability::Kind;
use crate::faults::Named;
use crate::growth::Growing;
use crate::mapping::{self, AddressRange};
use crate::{LockError, MapError, StoreLock, huge, write_path};

/// The default number of addresses reserved from the start: most stores stay shorter, and a process has about
/// 4,000x as many.
pub const KEPT_BYTES: u64 = 32 << 30;

/// The options of mapping a file or DAX device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MapOptions {
    /// The largest size of the region. Smaller if the process' address space is limited, larger if the file is
    /// longer.
    pub reserve_bytes: u64,
    /// Number of addresses, of these, that are reserved from the start. Behind them, the region can grow while the
    /// process uses those addresses for nothing else; otherwise growth ends with [`pmem::MediumError::Limit`].
    pub kept_bytes: u64,
    /// False opens the file for reading and maps it without write access.
    pub writable: bool,
    /// Makes new space on tmpfs huge pages.
    pub huge_pages: bool,
    /// Writes items with non-temporal stores on every medium, without timing whether they are faster.
    pub non_temporal: bool,
}

impl Default for MapOptions {
    /// Returns these options: 1 TiB, of which [`KEPT_BYTES`] are reserved from the start; writable, with huge
    /// pages, and with the faster way to write items.
    fn default() -> MapOptions {
        MapOptions {
            reserve_bytes: 1 << 40,
            kept_bytes: KEPT_BYTES,
            writable: true,
            huge_pages: true,
            non_temporal: false,
        }
    }
}

/// A region mapped from a file or a DAX device.
#[derive(Debug)]
pub struct Mapped {
    pub(crate) addresses: AddressRange,
    pub(crate) len_bytes: AtomicU64,
    /// Equal to `len_bytes`, or 0 if nothing may be stored, so that one comparison covers both.
    pub(crate) writable_bytes: AtomicU64,
    pub(crate) writable: bool,
    /// The permitted size of the region when it was mapped.
    pub(crate) allowed_bytes: u64,
    pub(crate) backing: Backing,
    /// Items are written with non-temporal stores.
    pub(crate) past_cache: bool,
    pub(crate) durability: Durability,
    pub(crate) kind: Kind,
    pub(crate) access: ProtFlags,
    pub(crate) sharing: MapFlags,
    /// The size of the huge pages to make in new space, if any.
    pub(crate) huge_page_bytes: Option<u64>,
    /// Held while the length changes, or is about to. Under it, only the locks of `small_pages` are taken.
    pub(crate) growing: Mutex<Growing>,
    pub(crate) small_pages: SmallPages,
    _named: Named,
}

impl Mapped {
    /// Creates the file `path`, which must not exist, with at least `bytes` zero bytes, and maps it. The medium stays
    /// valid when the file is renamed.
    ///
    /// # Errors
    /// [`MapError::Full`] or [`MapError::Limit`] if there is not enough space, [`MapError::Io`] if the file exists
    /// or the operating system refuses. The file is removed again then.
    pub fn create(path: &Path, bytes: u64, options: MapOptions) -> Result<Mapped, MapError> {
        let options = MapOptions { writable: true, ..options };
        let backing = Backing::create(path)?;
        Mapped::map_new(backing, bytes, path, options).inspect_err(|_| {
            // The unfinished file must not stay; a failure to remove it adds nothing to the error.
            let _ = fs::remove_file(path);
        })
    }

    /// Maps the file `path`. A tail shorter than a page is left out. Holes stay: call [`pmem::Space::allocate`]
    /// before stores.
    ///
    /// # Errors
    /// [`MapError::NotAFile`], [`MapError::TooSmall`] if it has less than a page, [`MapError::Io`] if the operating
    /// system refuses.
    pub fn open(path: &Path, options: MapOptions) -> Result<Mapped, MapError> {
        Mapped::map_whole(Backing::open(path, options.writable)?, path, options)
    }

    /// Maps the device-DAX device `path`.
    ///
    /// # Errors
    /// [`MapError::NotADevice`], [`MapError::TooSmall`], or [`MapError::Io`] if the operating system refuses.
    pub fn open_device(path: &Path, options: MapOptions) -> Result<Mapped, MapError> {
        Mapped::map_whole(Backing::open_device(path, options.writable)?, path, options)
    }

    /// Locks the file or DAX device itself, called `path`: for a writer, or for one of many readers if it was
    /// opened for reading.
    ///
    /// # Errors
    /// See [`LockError`].
    pub fn lock(&self, path: &Path) -> Result<StoreLock, LockError> {
        StoreLock::of_open(self.backing.fd(), path, self.writable)
    }

    /// Makes every byte, and the file's length, durable through the file system.
    ///
    /// # Errors
    /// The operating system's; the file's state is unknown then.
    pub fn sync_file(&self) -> io::Result<()> {
        Ok(self.backing.sync()?)
    }

    /// Returns the reason for [`pmem::Persist::durability`], as a clause without a full stop.
    #[must_use]
    pub fn explain(&self) -> &'static str {
        self.kind.explain(self.durability, self.sharing.contains(MapFlags::SYNC))
    }

    /// Returns true if a journal would be more durable than [`pmem::Persist::durability`].
    #[must_use]
    pub fn lacks_a_journal(&self) -> bool {
        self.durability != Durability::Power && self.kind.has_disk()
    }

    /// Returns the way of writing items, for statistics: `non-temporal`, or the write-back instruction's name.
    #[must_use]
    pub fn write_path(&self) -> &'static str {
        if self.past_cache { "non-temporal" } else { pmem::arch::flush_instruction() }
    }

    /// Returns the number of bytes mapped by huge pages at this moment. Slow: reads `/proc/self/smaps`.
    ///
    /// # Errors
    /// If that file cannot be read.
    pub fn huge_page_bytes(&self) -> io::Result<u64> {
        huge::mapped_bytes(self.addresses.addresses(0..self.addresses.len_bytes()))
    }

    /// Returns false in a forked child, which must not access the region: it is not mapped there. Costs one load.
    #[inline(always)]
    #[must_use]
    pub fn in_owner(&self) -> bool {
        self.addresses.in_owner()
    }

    /// Returns the largest possible size of the region.
    #[must_use]
    pub fn limit_bytes(&self) -> u64 {
        self.allowed_bytes.min(self.addresses.limit_bytes()).min(self.backing.limit_bytes())
    }

    fn map_new(backing: Backing, bytes: u64, path: &Path, options: MapOptions) -> Result<Mapped, MapError> {
        let limit_bytes = backing.limit_bytes();
        let len_bytes = bytes.max(1).checked_next_multiple_of(backing.page_bytes()).filter(|&len| len <= limit_bytes);
        let too_long = || MapError::Limit { path: path.to_owned(), wanted_bytes: bytes, limit_bytes };
        let len_bytes = len_bytes.ok_or_else(too_long)?;
        backing.set_len(len_bytes).map_err(MapError::space(path, "extend", len_bytes))?;
        let mapped = Mapped::map(backing, len_bytes, path, options)?;
        mapped.allow_huge_pages(0..len_bytes);
        mapped
            .take_space(0..len_bytes, &mut Growing::default())
            .map_err(MapError::space(path, "allocate", len_bytes))?;
        Ok(mapped)
    }

    fn map_whole(backing: Backing, path: &Path, options: MapOptions) -> Result<Mapped, MapError> {
        let examined = backing.len_bytes();
        let len_bytes = examined.map_err(|source| MapError::Io { path: path.to_owned(), source, doing: "examine" })?;
        let page_bytes = backing.page_bytes();
        if len_bytes < page_bytes {
            return Err(MapError::TooSmall { path: path.to_owned(), len_bytes, page_bytes });
        }
        let mapped = Mapped::map(backing, len_bytes - len_bytes % page_bytes, path, options)?;
        mapped.small_pages.extend(0..len_bytes);
        Ok(mapped)
    }

    /// Maps the first `len_bytes`, which the file has.
    fn map(backing: Backing, len_bytes: u64, path: &Path, options: MapOptions) -> Result<Mapped, MapError> {
        let access = if options.writable { ProtFlags::READ | ProtFlags::WRITE } else { ProtFlags::READ };
        let addresses = AddressRange::reserve(options.reserve_bytes, options.kept_bytes, len_bytes)
            .map_err(|errno| MapError::addresses(path, options.kept_bytes, len_bytes)(errno))?;
        let sharing =
            map_first(&addresses, &backing, len_bytes, access).map_err(MapError::space(path, "map", len_bytes))?;
        let map_sync = sharing.contains(MapFlags::SYNC);
        let (kind, durability) = (backing.kind(map_sync), backing.durability(map_sync));
        let to_be_huge = options.huge_pages && kind == Kind::Tmpfs;
        Ok(Mapped {
            len_bytes: AtomicU64::new(len_bytes),
            writable_bytes: AtomicU64::new(if options.writable { len_bytes } else { 0 }),
            writable: options.writable,
            allowed_bytes: options.reserve_bytes.max(len_bytes),
            past_cache: options.non_temporal || write_path::is_past_cache(durability),
            durability,
            kind,
            access,
            sharing,
            huge_page_bytes: to_be_huge.then(huge::page_bytes).flatten(),
            growing: Mutex::default(),
            small_pages: SmallPages::default(),
            _named: Named::new(addresses.addresses(0..addresses.len_bytes()), path),
            addresses,
            backing,
        })
    }
}

/// Maps the first piece, which also determines how this file is mapped: with MAP_SYNC if that is granted, so that a
/// page that was stored to is never lost with the file system's metadata.
fn map_first(
    addresses: &AddressRange,
    backing: &Backing,
    len_bytes: u64,
    access: ProtFlags,
) -> Result<MapFlags, Errno> {
    let synchronous = MapFlags::SHARED_VALIDATE | MapFlags::SYNC;
    let sharing = match mapping::try_to_map(backing.fd(), backing.page_bytes(), access, synchronous) {
        Err(Errno::OPNOTSUPP | Errno::INVAL) => MapFlags::SHARED,
        tried => tried.map(|()| synchronous)?,
    };
    addresses.map(backing.fd(), 0..len_bytes, access, sharing).map(|()| sharing)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::{ptr, thread};

    use rustix::mm::{mmap_anonymous, munmap};

    use super::*;

    /// Another thread, whose mappings the kernel puts right below the region's, must never get one of the region's
    /// addresses.
    #[test]
    fn probing_map_modes_leaves_no_gap() {
        const LEN_BYTES: u64 = 4 << 20;
        const THEIR_BYTES: usize = 1 << 40;
        let directory = tempfile::tempdir().unwrap();
        let backing = Backing::create(&directory.path().join("region")).unwrap();
        backing.set_len(LEN_BYTES).unwrap();
        let addresses = AddressRange::reserve(1 << 30, 1 << 30, 1).unwrap();
        let ours = addresses.addresses(0..addresses.len_bytes());
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..40_000 {
                    map_first(&addresses, &backing, LEN_BYTES, ProtFlags::READ).unwrap();
                }
                done.store(true, Ordering::Release);
            });
            while !done.load(Ordering::Acquire) {
                let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
                // SAFETY: a fresh mapping at an address of the kernel's choice disturbs no other memory.
                let theirs =
                    unsafe { mmap_anonymous(ptr::null_mut(), THEIR_BYTES, ProtFlags::empty(), flags) }.unwrap();
                let start = theirs as u64;
                assert!(start + THEIR_BYTES as u64 <= ours.start || ours.end <= start, "{start:#x} lies in {ours:x?}");
                // SAFETY: no code uses the mapping.
                unsafe { munmap(theirs, THEIR_BYTES) }.unwrap();
            }
        });
    }
}
