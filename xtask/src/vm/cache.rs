//! The model of the processor's cache in front of an NVDIMM: a plugin of the emulator (`kernel/ink/plugin`), as a
//! guest uses it.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::Failure;
use crate::rustc::run;
use crate::tree::root;

/// The path of the model, and of the durable contents of the NVDIMM.
pub(crate) struct Cache {
    plugin: PathBuf,
    durable: PathBuf,
}

/// The party whose stores pass through the cache. Stores of the other party are ignored, or durable immediately.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum By {
    Kernel,
    Processes,
}

/// The cuts of a boot, each after at most this many stores or fences. If one of the two is 0, cuts come only before
/// the other.
#[derive(Clone, Copy)]
pub(crate) struct Cuts<'a> {
    /// The last cut ends the boot; the others leave images.
    pub(crate) count: u64,
    pub(crate) stores_max: u64,
    pub(crate) fences_max: u64,
    /// Path of the images; each adds a point and a number.
    pub(crate) image: &'a Path,
}

impl Cache {
    /// Compiles the model in `work`.
    pub(crate) fn build(work: &Path) -> Result<Cache, Failure> {
        let (plugin, source) = (work.join("cache.so"), root()?.join("kernel/ink/plugin/cache.c"));
        let mut compile = Command::new("gcc");
        compile.args(["-O2", "-Wall", "-Wno-unused-parameter", "-shared", "-fPIC", "-o"]);
        run(compile.arg(&plugin).arg(source))?;
        Ok(Cache { plugin, durable: work.join("durable") })
    }

    /// Starts with `len_bytes` of zeros as the durable contents.
    pub(crate) fn empty(&self, len_bytes: u64) -> Result<(), Failure> {
        let described = |error: std::io::Error| format!("{}: {error}", self.durable.display());
        File::create(&self.durable).and_then(|file| file.set_len(len_bytes)).map_err(described)
    }

    /// Takes the durable contents from `nvdimm`.
    pub(crate) fn take(&self, nvdimm: &Path) -> Result<(), Failure> {
        copy(nvdimm, &self.durable)
    }

    /// Copies the durable contents to `file`.
    pub(crate) fn leave(&self, file: &Path) -> Result<(), Failure> {
        copy(&self.durable, file)
    }

    /// Copies the durable contents to `nvdimm` and returns the emulator's arguments that load the model.
    pub(crate) fn before(
        &self,
        by: By,
        nvdimm: &Path,
        seed: u64,
        evicted_one_in: u64,
        cuts: Cuts<'_>,
    ) -> Result<[String; 2], Failure> {
        copy(&self.durable, nvdimm)?;
        let len_bytes = nvdimm.metadata().map_err(|error| format!("{}: {error}", nvdimm.display()))?.len();
        let by = if by == By::Kernel { "kernel" } else { "processes" };
        let Cuts { count, stores_max, fences_max, image } = cuts;
        let [plugin, live, durable] = [&self.plugin, nvdimm, &self.durable].map(|file: &Path| file.display());
        let described =
            format!("by={by},size={len_bytes},live={live},durable={durable},seed={seed},evict={evicted_one_in}");
        let cuts = format!("cuts={count},stores={stores_max},fences={fences_max},image={}", image.display());
        Ok(["-plugin".to_owned(), format!("{plugin},{described},{cuts}")])
    }
}

/// Copies a file without its holes.
fn copy(from: &Path, to: &Path) -> Result<(), Failure> {
    run(Command::new("cp").arg("--sparse=always").arg(from).arg(to))
}
