//! The architecture in one figure: the layers through which a call goes down, from the front ends to the storage.

use super::svg::{Drawing, Text};
use crate::failure::Failure;

/// A box: name, purpose, source folder.
struct Part(&'static str, &'static str, &'static str);

struct Layer {
    title: &'static str,
    fill: &'static str,
    parts: &'static [Part],
}

const LAYERS: [Layer; 7] = [
    Layer {
        title: "Front ends",
        fill: "#d6eaf2",
        parts: &[
            Part("cli", "the program hikv", "frontends/cli"),
            Part("server", "Redis clients", "frontends/server"),
            Part("device", "NVMe Key Value hosts", "frontends/device"),
            Part("kernel/ink", "Linux module, own path to ink", "kernel/ink"),
        ],
    },
    Layer {
        title: "Library",
        fill: "#cfe8d5",
        parts: &[Part("hikv", "Store, Options, errors: one interface for every engine", "crates/hikv")],
    },
    Layer {
        title: "Engines",
        fill: "#fbe9c6",
        parts: &[
            Part("hikv", "hash index, order in DRAM", "crates/engines/hikv"),
            Part("rewo-hash", "hash table of buckets", "crates/engines/rewo-hash"),
            Part("ink", "persistent B+tree", "crates/engines/ink"),
            Part("pmekv", "log, index in DRAM", "crates/engines/pmekv"),
        ],
    },
    Layer {
        title: "Structures",
        fill: "#f6ddcc",
        parts: &[
            Part("index", "hash tables, B+tree", "crates/index"),
            Part("pbtree", "B+tree, undo-log", "crates/pbtree"),
            Part("items", "keys and values", "crates/items"),
            Part("epoch", "reclaims memory", "crates/epoch"),
        ],
    },
    Layer { title: "Allocator", fill: "#ead7ee", parts: &[Part("heap", "chunks, slots, superblock", "crates/heap")] },
    Layer {
        title: "Medium",
        fill: "#e3e6ea",
        parts: &[Part(
            "pmem",
            "the interface of media: every store to persistent memory passes here, counted and crashed by tests",
            "crates/pmem",
        )],
    },
    Layer {
        title: "Media",
        fill: "#f2f3f4",
        parts: &[
            Part("pmem-os", "persistent memory, tmpfs", "crates/pmem-os"),
            Part("journal", "ordinary disks", "crates/journal"),
            Part("pmem-sim", "crash tests", "testing/pmem-sim"),
        ],
    },
];

/// Returns an error that names the first box without a source folder.
pub(super) fn check(is_folder: &dyn Fn(&str) -> bool) -> Result<(), Failure> {
    let mut parts = LAYERS.iter().flat_map(|layer| layer.parts);
    match parts.find(|Part(_, _, folder)| !is_folder(folder)) {
        Some(Part(name, _, folder)) => {
            Err(format!("the figure of the architecture has a box {name}, but {folder} does not exist"))
        }
        None => Ok(()),
    }
}

const WIDTH: u32 = 900;
const LEFT: u32 = 110;
const LAYER_HEIGHT: u32 = 64;
const BOX_HEIGHT: u32 = 52;
const GAP: u32 = 8;

/// Draws the figure.
pub(super) fn drawing() -> String {
    let mut drawing = Drawing::new(WIDTH, LAYERS.len() as u32 * LAYER_HEIGHT + 44, "hikv: the crates as layers");
    drawing.text(20, 24, Text::Title, "hikv: a call goes down, from the front ends to the storage");
    for (number, layer) in LAYERS.iter().enumerate() {
        let top = 36 + number as u32 * LAYER_HEIGHT;
        drawing.text(20, top + 31, Text::Strong, layer.title);
        let width = (WIDTH - LEFT - 20) / layer.parts.len() as u32;
        for (place, Part(name, purpose, _)) in layer.parts.iter().enumerate() {
            let x = LEFT + place as u32 * width;
            drawing.bar(x, top, (width - GAP, BOX_HEIGHT), layer.fill);
            drawing.text(x + 10, top + 21, Text::Strong, name);
            drawing.text(x + 10, top + 40, Text::Plain, purpose);
        }
    }
    drawing.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_crates_are_named() {
        assert!(check(&|_| true).is_ok());
        assert!(check(&|folder| folder != "crates/epoch").unwrap_err().contains("crates/epoch does not exist"));
    }

    #[test]
    fn every_box_is_drawn() {
        let drawing = drawing();
        LAYERS.iter().flat_map(|layer| layer.parts).for_each(|Part(name, ..)| assert!(drawing.contains(name)));
    }
}
