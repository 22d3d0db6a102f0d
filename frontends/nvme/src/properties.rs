//! A controller's properties, which replace registers in fabrics (base specification, 3.1.3).

/// A property, identified by its offset.
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
    /// Returns the property at an offset, for an access of this length.
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

    /// Returns its offset.
    #[must_use]
    pub fn offset(self) -> u32 {
        match self {
            Property::Capabilities => 0x00,
            Property::Version => 0x08,
            Property::Configuration => 0x14,
            Property::Status => 0x1c,
        }
    }

    /// Returns its length.
    #[must_use]
    pub fn len_bytes(self) -> usize {
        if self == Property::Capabilities { 8 } else { 4 }
    }
}

/// CAP: a controller's capabilities.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Capabilities {
    /// Maximum number of a queue's entries, minus one.
    pub queue_entries_max: u16,
    /// Maximum time until it is ready, in units of 500 ms.
    pub ready_timeout: u8,
}

impl Capabilities {
    /// Encodes the bits. Queues are contiguous, and several command sets are supported.
    #[must_use]
    pub fn bits(self) -> u64 {
        const CONTIGUOUS: u64 = 1 << 16;
        const SEVERAL_COMMAND_SETS: u64 = 1 << (37 + 6);
        u64::from(self.queue_entries_max) | CONTIGUOUS | u64::from(self.ready_timeout) << 24 | SEVERAL_COMMAND_SETS
    }

    /// Decodes the bits.
    #[must_use]
    pub fn of_bits(bits: u64) -> Capabilities {
        Capabilities { queue_entries_max: bits as u16, ready_timeout: (bits >> 24) as u8 }
    }
}

/// CC: a controller's configuration, set by the host.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Configuration(pub u32);

impl Configuration {
    /// The configuration of a host that enables a controller with all its command sets.
    pub const ENABLED: Configuration = Configuration(1 | 6 << 4 | 6 << 16 | 4 << 20);

    /// Returns whether the controller is to be enabled.
    #[must_use]
    pub fn is_enabled(self) -> bool {
        self.0 & 1 != 0
    }

    /// Returns whether the controller is to shut down.
    #[must_use]
    pub fn is_shutdown(self) -> bool {
        self.0 >> 14 & 3 != 0
    }

    /// Returns the command sets: 0 only the one for blocks, 6 all, 7 none.
    #[must_use]
    pub fn command_sets(self) -> u32 {
        self.0 >> 4 & 7
    }

    /// Returns whether the entry sizes are valid powers of two: 64 and 16 bytes; 0 is accepted from hosts that set them
    /// later.
    #[must_use]
    pub fn has_entry_sizes(self) -> bool {
        matches!(self.0 >> 16 & 0xff, 0x46 | 0)
    }
}

/// The progress of a shutdown.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ShutdownState {
    /// None was requested.
    #[default]
    Normal = 0,
    /// It is complete.
    Complete = 2,
}

/// CSTS: a controller's status.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StatusRegister {
    /// It accepts commands.
    pub is_ready: bool,
    /// It has failed, and accepts none any more.
    pub is_fatal: bool,
    /// The progress of a shutdown.
    pub shutdown: ShutdownState,
}

impl StatusRegister {
    /// Encodes the bits.
    #[must_use]
    pub fn bits(self) -> u32 {
        u32::from(self.is_ready) | u32::from(self.is_fatal) << 1 | (self.shutdown as u32) << 2
    }

    /// Decodes the bits.
    #[must_use]
    pub fn of_bits(bits: u32) -> StatusRegister {
        let shutdown = if bits >> 2 & 3 == 2 { ShutdownState::Complete } else { ShutdownState::Normal };
        StatusRegister { is_ready: bits & 1 != 0, is_fatal: bits & 2 != 0, shutdown }
    }
}
