//! Single-steps a program between two marks.
//!
//! The program marks by stopping itself. Before the first mark and after the second it runs freely.

use std::arch::asm;
use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::sys::personality::{self, Persona};
use nix::sys::ptrace;
use nix::sys::signal::{self, Signal};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::Pid;

use crate::failure::Failure;
use crate::kinds::{BOUNDARY_DISPLACEMENT, Counter, Executed, INSTRUCTION_BYTES_MAX};
use crate::symbols::Mappings;

/// Marks the begin or the end of counting, in the program that is counted.
pub(crate) fn mark() -> Result<(), Failure> {
    Ok(signal::raise(Signal::SIGSTOP)?)
}

/// Marks the end of an operation and the begin of the next.
#[inline(always)]
pub(crate) fn boundary() {
    // SAFETY: a `nop`, whatever its operand, touches neither memory nor registers.
    unsafe {
        asm!("nop dword ptr [rax + {}]", const BOUNDARY_DISPLACEMENT, options(nostack, preserves_flags));
    }
}

/// Counts each operation of `program` between its first and its second mark, in the thread that makes the marks;
/// returns also the mappings of its files.
pub(crate) fn count_between_marks(mut program: Command) -> Result<(Executed, Mappings), Failure> {
    // SAFETY: `ptrace` and `personality` are only system calls: nothing is allocated between fork and exec.
    unsafe { program.pre_exec(|| Ok(trace_me()?)) };
    let child = program.spawn()?;
    let traced = Pid::from_raw(i32::try_from(child.id())?);
    // The stop at exec itself.
    let stopped = waitpid(traced, None)?;
    if !matches!(stopped, WaitStatus::Stopped(_, Signal::SIGTRAP)) {
        return Err(format!("the program does not start: {stopped:?}").into());
    }
    ptrace::setoptions(traced, ptrace::Options::PTRACE_O_EXITKILL)?;
    run_to_mark(traced)?;
    let executed = step_to_mark(traced)?;
    let mappings = Mappings::of(traced)?;
    finish(traced)?;
    Ok((executed, mappings))
}

/// Requests tracing. Addresses are the same in each run, so that counts repeat.
fn trace_me() -> nix::Result<()> {
    personality::set(Persona::ADDR_NO_RANDOMIZE)?;
    ptrace::traceme()
}

fn run_to_mark(traced: Pid) -> Result<(), Failure> {
    let mut pass_on = None;
    loop {
        ptrace::cont(traced, pass_on)?;
        match waitpid(traced, None)? {
            WaitStatus::Stopped(_, Signal::SIGSTOP) => return Ok(()),
            WaitStatus::Stopped(_, signal) => pass_on = Some(signal),
            ended => return Err(format!("no mark was reached: {ended:?}").into()),
        }
    }
}

fn step_to_mark(traced: Pid) -> Result<Executed, Failure> {
    let mut counter = Counter::default();
    let mut pass_on = None;
    loop {
        let address = ptrace::getregs(traced)?.rip;
        counter.step(address, || code_at(traced, address))?;
        ptrace::step(traced, pass_on.take())?;
        match waitpid(traced, None)? {
            WaitStatus::Stopped(_, Signal::SIGTRAP) => {}
            WaitStatus::Stopped(_, Signal::SIGSTOP) => return Ok(counter.into_executed()),
            WaitStatus::Stopped(_, signal) => pass_on = Some(signal),
            ended => return Err(format!("the second mark was not reached: {ended:?}").into()),
        }
    }
}

fn finish(traced: Pid) -> Result<(), Failure> {
    ptrace::cont(traced, None)?;
    match waitpid(traced, None)? {
        WaitStatus::Exited(_, 0) => Ok(()),
        ended => Err(format!("the program failed: {ended:?}").into()),
    }
}

fn code_at(traced: Pid, address: u64) -> nix::Result<[u8; INSTRUCTION_BYTES_MAX]> {
    let mut code = [0; 16];
    for (word, bytes) in code.chunks_exact_mut(8).enumerate() {
        let at = (address as usize + 8 * word) as ptrace::AddressType;
        // The last word may be on an unmapped page; missing bytes stay zero.
        match ptrace::read(traced, at) {
            Ok(read) => bytes.copy_from_slice(&read.to_le_bytes()),
            Err(error) if word == 0 => return Err(error),
            Err(_) => {}
        }
    }
    Ok(*code.first_chunk().expect("sixteen bytes hold fifteen"))
}
