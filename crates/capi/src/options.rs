//! Option structures, which begin with their size and grow at the end.

use std::ffi::{CStr, c_char, c_int};
use std::time::Duration;
use std::{mem, ptr};

use hikv::{Durability, Options, Transact, Tuning};

use crate::code;
use crate::failure::Failure;
use crate::memory::array;

/// Options of `hikv_open`.
#[derive(Clone, Copy)]
#[repr(C)]
#[allow(non_camel_case_types)]
pub struct hikv_options {
    /// The size of the caller's structure.
    pub size: usize,
    /// The engine of a new store, or null.
    pub engine: *const c_char,
    /// Flags.
    pub flags: u32,
    /// The level of durability.
    pub durability: c_int,
    /// The longest region, or 0.
    pub region_bytes_max: u64,
    /// The longest log, or 0.
    pub log_bytes_max: u64,
    /// The bytes of the read cache.
    pub read_cache_bytes: u64,
    /// The interval of syncs, or 0.
    pub sync_interval_us: u64,
    /// The number of background threads, or 0.
    pub background_threads: u32,
    /// Must be 0.
    pub reserved: u32,
}

/// Options of `hikv_transact`.
#[derive(Clone, Copy)]
#[repr(C)]
#[allow(non_camel_case_types)]
pub struct hikv_transact_options {
    /// The size of the caller's structure.
    pub size: usize,
    /// Flags.
    pub flags: u32,
    /// The most attempts, or 0.
    pub attempts: u32,
}

const DEFAULTS: hikv_options = hikv_options {
    size: size_of::<hikv_options>(),
    engine: ptr::null(),
    flags: code::CREATE | code::HUGE_PAGES,
    durability: code::HIGHEST,
    region_bytes_max: 0,
    log_bytes_max: 0,
    read_cache_bytes: 0,
    sync_interval_us: 0,
    background_threads: 0,
    reserved: 0,
};

/// A structure of integers and pointers, without padding, that begins with its size.
///
/// # Safety
/// That is so, and its first version has this size: each of its bit patterns is a value.
unsafe trait Sized1: Copy {
    const NAME: &str;
}

// SAFETY: two words, two 32-bit integers, four words, two 32-bit integers.
unsafe impl Sized1 for hikv_options {
    const NAME: &str = "hikv_options";
}

const _: () = assert!(size_of::<hikv_options>() == 2 * size_of::<usize>() + 48);

// SAFETY: a word and two 32-bit integers.
unsafe impl Sized1 for hikv_transact_options {
    const NAME: &str = "hikv_transact_options";
}

const _: () = assert!(size_of::<hikv_transact_options>() == size_of::<usize>() + 8);

/// Copies a structure of the caller, which may be a later version if all that this version does not know is 0.
///
/// # Safety
/// `options` is null, or valid for the size with which it begins.
unsafe fn copied<T: Sized1>(options: *const T) -> Result<Option<T>, Failure> {
    if options.is_null() {
        return Ok(None);
    }
    // SAFETY: the structure begins with its size.
    let size = unsafe { options.cast::<usize>().read_unaligned() };
    if size < size_of::<T>() {
        let (name, known) = (T::NAME, size_of::<T>());
        return Err(Failure::option(format!("{name}.size is {size}; the structure has {known} bytes")));
    }
    // SAFETY: the caller vouches for `size` bytes.
    let bytes = unsafe { array(options.cast::<u8>(), size, T::NAME)? };
    if bytes[size_of::<T>()..].iter().any(|byte| *byte != 0) {
        return Err(Failure::option(format!("{} sets options that this version of hikv does not know", T::NAME)));
    }
    // SAFETY: there are as many bytes, and all of them together are a value.
    Ok(Some(unsafe { options.read_unaligned() }))
}

fn check_flags(name: &str, flags: u32, known: u32) -> Result<(), Failure> {
    match flags & !known {
        0 => Ok(()),
        unknown => Err(Failure::option(format!("{name} has the unknown flags {unknown:#x}"))),
    }
}

/// Fills in the defaults.
///
/// # Safety
/// [That of the crate](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hikv_options_init(options: *mut hikv_options, size: usize) {
    if options.is_null() || size < size_of::<usize>() {
        return;
    }
    let defaults = hikv_options { size, ..DEFAULTS };
    let known = size.min(size_of::<hikv_options>());
    // SAFETY: the caller vouches for `size` bytes, of which `known` are copied and the others become 0.
    unsafe {
        ptr::copy_nonoverlapping((&raw const defaults).cast::<u8>(), options.cast::<u8>(), known);
        ptr::write_bytes(options.cast::<u8>().add(known), 0, size - known);
    }
}

/// Returns the library's options.
///
/// # Safety
/// `options` is null, or valid for the size with which it begins; its engine is null or a text.
pub(crate) unsafe fn options_of(options: *const hikv_options) -> Result<Options, Failure> {
    // SAFETY: as this function's.
    let given = unsafe { copied(options)? }.unwrap_or(DEFAULTS);
    let known = code::CREATE | code::OPEN_READ_ONLY | code::UNORDERED | code::HUGE_PAGES | code::NO_BACKGROUND;
    check_flags("hikv_options.flags", given.flags, known)?;
    if given.reserved != 0 {
        return Err(Failure::option(format!("hikv_options.reserved is {}, not 0", given.reserved)));
    }
    let is_set = |flag| given.flags & flag != 0;
    let mut options = Options::new()
        .create(is_set(code::CREATE))
        .read_only(is_set(code::OPEN_READ_ONLY))
        .ordered(!is_set(code::UNORDERED))
        .background(!is_set(code::NO_BACKGROUND))
        .read_cache_bytes(given.read_cache_bytes);
    if !given.engine.is_null() {
        // SAFETY: the caller vouches for the text.
        let name = unsafe { CStr::from_ptr(given.engine) }.to_string_lossy();
        options = options.engine(name.parse().map_err(|error| Failure::option(format!("{error}")))?);
    }
    if let Some(level) = durability_of(given.durability)? {
        options = options.durability(level);
    }
    if given.region_bytes_max > 0 {
        options = options.region_bytes_max(given.region_bytes_max);
    }
    if given.sync_interval_us > 0 {
        options = options.sync_interval(Duration::from_micros(given.sync_interval_us));
    }
    Ok(options.tuning(|tuning| tuned(tuning, &given)))
}

fn tuned(tuning: Tuning, given: &hikv_options) -> Tuning {
    let mut tuning = tuning.huge_pages(given.flags & code::HUGE_PAGES != 0);
    if given.log_bytes_max > 0 {
        tuning = tuning.log_bytes_max(given.log_bytes_max);
    }
    if given.background_threads > 0 {
        tuning = tuning.background_threads(given.background_threads as usize);
    }
    tuning
}

fn durability_of(level: c_int) -> Result<Option<Durability>, Failure> {
    match level {
        code::HIGHEST => Ok(None),
        code::PROCESS => Ok(Some(Durability::Process)),
        code::BUFFERED => Ok(Some(Durability::Buffered)),
        code::POWER => Ok(Some(Durability::Power)),
        other => Err(Failure::option(format!("{other} is no level of durability"))),
    }
}

/// Returns the library's options of a transaction.
///
/// # Safety
/// `options` is null, or valid for the size with which it begins.
pub(crate) unsafe fn transact_of(options: *const hikv_transact_options) -> Result<Transact, Failure> {
    // SAFETY: as this function's.
    let Some(given) = (unsafe { copied(options)? }) else { return Ok(Transact::new()) };
    check_flags("hikv_transact_options.flags", given.flags, code::EXCLUSIVE_FIRST | code::NEVER_EXCLUSIVE)?;
    let mut transact = Transact::new().exclusive(given.flags & code::NEVER_EXCLUSIVE == 0);
    if given.flags & code::EXCLUSIVE_FIRST != 0 {
        transact = transact.exclusive_first();
    }
    Ok(if given.attempts == 0 { transact } else { transact.attempts(given.attempts) })
}

const _: () = assert!(mem::offset_of!(hikv_options, size) == 0 && mem::offset_of!(hikv_transact_options, size) == 0);
