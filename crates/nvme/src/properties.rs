//! A controller's properties, which fabrics have in place of registers (base specification, 3.1.3).

/// A property, by its place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Property {
    /// CAP, of 8 bytes.
    Capabilities,
    /// VS.
    Version,
    /// CC.
    Configuration,
    /// CSTS.
    Status,
}

impl Property {
    /// The property at a place, read or written with so many bytes.
    #[must_use]
    pub fn at(offset: u32, len_bytes: usize) -> Option<Property> {
        match (offset, len_bytes) {
            (0x00, 8) => Some(Property::Capabilities),
            (0x08, 4) => Some(Property::Version),
            (0x14, 4) => Some(Property::Configuration),
            (0x1c, 4) => Some(Property::Status),
            _ => None,
        }
    }

    /// Its place.
    #[must_use]
    pub fn offset(self) -> u32 {
        match self {
            Property::Capabilities => 0x00,
            Property::Version => 0x08,
            Property::Configuration => 0x14,
            Property::Status => 0x1c,
        }
    }

    /// Its length.
    #[must_use]
    pub fn len_bytes(self) -> usize {
        if self == Property::Capabilities { 8 } else { 4 }
    }
}

/// CAP: what a controller can.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Capabilities {
    /// Entries that a queue can have, less one.
    pub queue_entries_max: u16,
    /// How long it may take to become ready, in units of 500 ms.
    pub ready_timeout: u8,
}

impl Capabilities {
    /// Its bits. Queues are contiguous, and there are several command sets.
    #[must_use]
    pub fn bits(self) -> u64 {
        const CONTIGUOUS: u64 = 1 << 16;
        const SEVERAL_COMMAND_SETS: u64 = 1 << (37 + 6);
        u64::from(self.queue_entries_max) | CONTIGUOUS | u64::from(self.ready_timeout) << 24 | SEVERAL_COMMAND_SETS
    }

    /// What bits say.
    #[must_use]
    pub fn of_bits(bits: u64) -> Capabilities {
        Capabilities { queue_entries_max: bits as u16, ready_timeout: (bits >> 24) as u8 }
    }
}

/// CC: what a host wants of a controller.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Configuration(pub u32);

impl Configuration {
    /// As a host sets it that enables a controller with all its command sets.
    pub const ENABLED: Configuration = Configuration(1 | 6 << 4 | 6 << 16 | 4 << 20);

    /// Whether the controller is to be enabled.
    #[must_use]
    pub fn is_enabled(self) -> bool {
        self.0 & 1 != 0
    }

    /// Whether the controller is to shut down.
    #[must_use]
    pub fn is_shutdown(self) -> bool {
        self.0 >> 14 & 3 != 0
    }

    /// Which command sets: 0 is that for blocks, 6 are all, 7 is none.
    #[must_use]
    pub fn command_sets(self) -> u32 {
        self.0 >> 4 & 7
    }

    /// Sizes of entries, as powers of two: 64 and 16 bytes; 0 is taken from hosts that set them later.
    #[must_use]
    pub fn has_entry_sizes(self) -> bool {
        matches!(self.0 >> 16 & 0xff, 0x46 | 0)
    }
}

/// How far a shutdown is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ShutdownState {
    /// None was asked for.
    #[default]
    Normal = 0,
    /// It is done.
    Complete = 2,
}

/// CSTS: how a controller is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StatusRegister {
    /// It takes commands.
    pub is_ready: bool,
    /// It has failed, and takes none any more.
    pub is_fatal: bool,
    /// How far a shutdown is.
    pub shutdown: ShutdownState,
}

impl StatusRegister {
    /// Its bits.
    #[must_use]
    pub fn bits(self) -> u32 {
        u32::from(self.is_ready) | u32::from(self.is_fatal) << 1 | (self.shutdown as u32) << 2
    }

    /// What bits say.
    #[must_use]
    pub fn of_bits(bits: u32) -> StatusRegister {
        let shutdown = if bits >> 2 & 3 == 2 { ShutdownState::Complete } else { ShutdownState::Normal };
        StatusRegister { is_ready: bits & 1 != 0, is_fatal: bits & 2 != 0, shutdown }
    }
}
