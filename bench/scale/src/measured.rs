//! Figures of hikv that the repository's pages have measured. A test requires that each page still says so.

/// A measured value, with the sentence or row of the page that has it.
#[derive(Clone, Copy, Debug)]
pub struct Figure {
    /// Name in the table of `docs/scale.md`.
    pub name: &'static str,
    /// The value as the model uses it.
    pub value: f64,
    /// The value as the table shows it.
    pub shown: &'static str,
    /// The page, below `docs/`.
    pub page: &'static str,
    /// Text of that page.
    pub quote: &'static str,
}

/// Key and value of an item.
pub const ITEM_BYTES: Figure = Figure {
    name: "key and value",
    value: 272.0,
    shown: "16 + 256 bytes",
    page: "benchmarks.md",
    quote: "An item has 272 bytes.",
};

/// Space of an item in the region, index included.
pub const REGION_BYTES: Figure = Figure {
    name: "space of an item in a store",
    value: 331.0,
    shown: "331 bytes",
    page: "benchmarks.md",
    quote: "A key takes 331 bytes of the region",
};

/// DRAM of a key under a limit of memory, for one read of the disk per get.
pub const INDEX_BYTES: Figure = Figure {
    name: "DRAM of a key in a store larger than memory: index",
    value: 23.0,
    shown: "23 bytes",
    page: "larger-than-memory.md",
    quote: "23 bytes a key: the hash index",
};

/// DRAM of a key for the order of keys.
pub const ORDER_BYTES: Figure = Figure {
    name: "DRAM of a key: order, at most",
    value: 27.0,
    shown: "27 bytes",
    page: "larger-than-memory.md",
    quote: "17 to 27 bytes a key, once ranges are used",
};

/// Share of a memory limit that tables may use.
pub const TABLES_SHARE: Figure = Figure {
    name: "share of the memory for these tables",
    value: 0.75,
    shown: "3/4",
    page: "larger-than-memory.md",
    quote: "Tables that leave less than a quarter of the limit for pages",
};

/// Puts per second of one writer on a disk at level `buffered`.
pub const PUTS_PER_SECOND: Figure = Figure {
    name: "puts of one writer into a store on a disk",
    value: 490_431.0,
    shown: "490 K/s",
    page: "benchmarks.md",
    quote: "| `buffered:put:1` | 490,431; 3.9 |",
};

/// Greatest size of a store.
pub const STORE_BYTES_MAX: Figure = Figure {
    name: "greatest store",
    value: (1u64 << 40) as f64,
    shown: "1 TiB",
    page: "limits.md",
    quote: "| store | 1 TiB |",
};

/// Seconds from the start of a killed server with 10 million keys to its first answer, at most.
pub const OPENING_SECONDS: Figure = Figure {
    name: "first answer after a kill, 10 M keys, at most",
    value: 1.0,
    shown: "1 s",
    page: "benchmarks.md",
    quote: "0.8 to 1 s if the kill interrupted a checkpoint",
};

/// Further seconds for each further key.
pub const OPENING_SECONDS_PER_ITEM: Figure = Figure {
    name: "the same, for each further million keys",
    value: 0.06e-6,
    shown: "0.06 s",
    page: "performance/journal.md",
    quote: "each further million keys takes about 0.06 s",
};

/// All figures, in the order of the page.
pub const ALL: [Figure; 9] = [
    ITEM_BYTES,
    REGION_BYTES,
    INDEX_BYTES,
    ORDER_BYTES,
    TABLES_SHARE,
    STORE_BYTES_MAX,
    PUTS_PER_SECOND,
    OPENING_SECONDS,
    OPENING_SECONDS_PER_ITEM,
];
