//! Classifies instructions, and counts them per operation and kind.

use std::collections::HashMap;

use iced_x86::{Code, Decoder, DecoderOptions, Instruction, Mnemonic, OpKind};

const LINE_BYTES: u64 = 64;
/// The length of the longest instruction.
pub(crate) const INSTRUCTION_BYTES_MAX: usize = 15;

/// Marks the end of an operation: the displacement of a `nop` that no compiler emits.
pub(crate) const BOUNDARY_DISPLACEMENT: u64 = 0x686b_6976;

/// The counts of one operation.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Counts {
    pub(crate) instructions: u64,
    /// Cache lines whose write-back was requested.
    pub(crate) flushes: u64,
    /// Bytes stored past the cache.
    pub(crate) streamed_bytes: u64,
    pub(crate) fences: u64,
    /// Instructions that lock a cache line.
    pub(crate) locked: u64,
}

impl Counts {
    /// Returns the complete lines stored past the cache.
    pub(crate) fn streamed_lines(&self) -> u64 {
        self.streamed_bytes / LINE_BYTES
    }

    fn add(&mut self, kind: Kind) {
        self.instructions += 1;
        match kind {
            Kind::Plain | Kind::Repeated | Kind::Boundary => {}
            Kind::Flush => self.flushes += 1,
            Kind::Streamed { bytes } => self.streamed_bytes += bytes,
            Kind::Fence => self.fences += 1,
            Kind::Locked => self.locked += 1,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Plain,
    /// A string instruction, which traps once per repetition.
    Repeated,
    Flush,
    Streamed {
        bytes: u64,
    },
    Fence,
    Locked,
    Boundary,
}

impl Kind {
    fn of(code: &[u8]) -> Kind {
        let instruction = Decoder::new(64, code, DecoderOptions::NONE).decode();
        match instruction.mnemonic() {
            Mnemonic::Clwb | Mnemonic::Clflush | Mnemonic::Clflushopt => Kind::Flush,
            Mnemonic::Sfence | Mnemonic::Mfence => Kind::Fence,
            Mnemonic::Nop if instruction.memory_displacement64() == BOUNDARY_DISPLACEMENT => Kind::Boundary,
            _ if is_streamed(instruction.code()) => Kind::Streamed { bytes: instruction.memory_size().size() as u64 },
            _ if locks(&instruction) => Kind::Locked,
            _ if instruction.has_rep_prefix() || instruction.has_repne_prefix() => Kind::Repeated,
            _ => Kind::Plain,
        }
    }
}

fn is_streamed(code: Code) -> bool {
    matches!(
        code.mnemonic(),
        Mnemonic::Movnti
            | Mnemonic::Movntdq
            | Mnemonic::Movntps
            | Mnemonic::Movntpd
            | Mnemonic::Vmovntdq
            | Mnemonic::Vmovntps
            | Mnemonic::Vmovntpd
    )
}

/// Returns true for a locking instruction. An exchange with memory locks without a prefix.
fn locks(instruction: &Instruction) -> bool {
    let exchanges = instruction.mnemonic() == Mnemonic::Xchg
        && (instruction.op0_kind() == OpKind::Memory || instruction.op1_kind() == OpKind::Memory);
    instruction.has_lock_prefix() || exchanges
}

/// Counts the instructions of a program that is single-stepped, operation by operation, and decodes each address once.
#[derive(Default)]
pub(crate) struct Counter {
    operations: Vec<Counts>,
    current: Counts,
    traces: Vec<Vec<u64>>,
    trace: Vec<u64>,
    kinds: HashMap<u64, Kind>,
    codes: HashMap<u64, [u8; INSTRUCTION_BYTES_MAX]>,
    last: Option<u64>,
}

/// The instructions that a program executed between its marks.
pub(crate) struct Executed {
    /// The counts of each operation.
    pub(crate) operations: Vec<Counts>,
    /// The addresses of its instructions, in their order.
    pub(crate) traces: Vec<Vec<u64>>,
    /// The code at these addresses.
    pub(crate) codes: HashMap<u64, [u8; INSTRUCTION_BYTES_MAX]>,
}

impl Counter {
    /// Counts the instruction at `address`, which comes next; `read` returns its code.
    pub(crate) fn step<E>(
        &mut self,
        address: u64,
        read: impl FnOnce() -> Result<[u8; INSTRUCTION_BYTES_MAX], E>,
    ) -> Result<(), E> {
        let kind = match self.kinds.get(&address) {
            Some(&kind) => kind,
            None => {
                let code = read()?;
                self.codes.insert(address, code);
                *self.kinds.entry(address).or_insert(Kind::of(&code))
            }
        };
        let goes_on = kind == Kind::Repeated && self.last == Some(address);
        if !goes_on {
            self.current.add(kind);
            self.trace.push(address);
        }
        if kind == Kind::Boundary {
            self.operations.push(std::mem::take(&mut self.current));
            self.traces.push(std::mem::take(&mut self.trace));
        }
        self.last = Some(address);
        Ok(())
    }

    /// Returns the operations, each of them from one boundary to the next.
    pub(crate) fn into_executed(self) -> Executed {
        let Counter { operations, traces, codes, .. } = self;
        let (operations, traces) = (operations.into_iter().skip(1), traces.into_iter().skip(1));
        Executed { operations: operations.collect(), traces: traces.collect(), codes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(codes: &[(u64, &[u8])]) -> Counts {
        let mut counter = Counter::default();
        for &(address, code) in codes {
            let read = || {
                let mut bytes = [0x90; INSTRUCTION_BYTES_MAX];
                bytes[..code.len()].copy_from_slice(code);
                Ok::<_, ()>(bytes)
            };
            counter.step(address, read).expect("the code is at hand");
        }
        counter.current
    }

    #[test]
    fn each_kind_is_recognised() {
        let counts = counted(&[
            (0, &[0x66, 0x0f, 0xae, 0x30]),        // clwb [rax]
            (4, &[0x66, 0x0f, 0xae, 0x38]),        // clflushopt [rax]
            (8, &[0x0f, 0xae, 0xf8]),              // sfence
            (11, &[0xf0, 0x48, 0x0f, 0xb1, 0x0a]), // lock cmpxchg [rdx], rcx
            (16, &[0x48, 0x87, 0x0a]),             // xchg [rdx], rcx
            (19, &[0x48, 0x87, 0xca]),             // xchg rdx, rcx
            (22, &[0x66, 0x0f, 0xe7, 0x00]),       // movntdq [rax], xmm0
            (26, &[0xc5, 0xfd, 0xe7, 0x00]),       // vmovntdq [rax], ymm0
            (30, &[0x48, 0x0f, 0xc3, 0x08]),       // movnti [rax], rcx
        ]);
        assert_eq!(counts, Counts { instructions: 9, flushes: 2, streamed_bytes: 56, fences: 1, locked: 2 });
    }

    #[test]
    fn operations_lie_between_boundaries() {
        let boundary: &[u8] = &[0x0f, 0x1f, 0x80, 0x76, 0x69, 0x6b, 0x68];
        let mut counter = Counter::default();
        for is_boundary in [false, true, false, false, true, true, false] {
            let read = || {
                let mut bytes = [0x90; INSTRUCTION_BYTES_MAX];
                if is_boundary {
                    bytes[..boundary.len()].copy_from_slice(boundary);
                }
                Ok::<_, ()>(bytes)
            };
            counter.step(u64::from(is_boundary), read).expect("the code is at hand");
        }
        let counted: Vec<u64> =
            counter.into_executed().operations.iter().map(|operation| operation.instructions).collect();
        assert_eq!(counted, [3, 1], "instructions before the first boundary and after the last do not count");
    }

    #[test]
    fn repeated_string_instruction_counts_once() {
        let movsb: &[u8] = &[0xf3, 0xa4];
        let nop: &[u8] = &[0x90];
        assert_eq!(counted(&[(0, movsb), (0, movsb), (0, movsb), (2, nop), (0, movsb)]).instructions, 3);
        assert_eq!(counted(&[(0, nop), (0, nop)]).instructions, 2, "a loop of one instruction is not repeated");
    }
}
