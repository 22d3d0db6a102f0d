//! The model of the processor's cache before an NVDIMM, a plugin of the emulator (`kernel/ink/plugin`), as a guest is given it.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::Failure;
use crate::rustc::run;
use crate::tree::root;

/// Where the model lies, and what is durable of the NVDIMM.
pub(crate) struct Cache {
    plugin: PathBuf,
    durable: PathBuf,
}

/// Whose stores go through the cache. Those of the other are not looked at, or durable at once.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum By {
    Kernel,
    Processes,
}

/// The cuts of a boot, each after so many stores or fences at most; with none of one kind, cuts come before the other alone.
#[derive(Clone, Copy)]
pub(crate) struct Cuts<'a> {
    /// The last one ends the boot; the others leave images.
    pub(crate) count: u64,
    pub(crate) stores_max: u64,
    pub(crate) fences_max: u64,
    /// Of each image, a point and a number behind.
    pub(crate) image: &'a Path,
}

impl Cache {
    /// Made in `work`.
    pub(crate) fn build(work: &Path) -> Result<Cache, Failure> {
        let (plugin, source) = (work.join("cache.so"), root()?.join("kernel/ink/plugin/cache.c"));
        let mut compile = Command::new("gcc");
        compile.args(["-O2", "-Wall", "-Wno-unused-parameter", "-shared", "-fPIC", "-o"]);
        run(compile.arg(&plugin).arg(source))?;
        Ok(Cache { plugin, durable: work.join("durable") })
    }

    /// Nothing is durable, of so many bytes.
    pub(crate) fn empty(&self, len_bytes: u64) -> Result<(), Failure> {
        let described = |error: std::io::Error| format!("{}: {error}", self.durable.display());
        File::create(&self.durable).and_then(|file| file.set_len(len_bytes)).map_err(described)
    }

    /// What is durable is what `nvdimm` has.
    pub(crate) fn take(&self, nvdimm: &Path) -> Result<(), Failure> {
        copy(nvdimm, &self.durable)
    }

    /// What is durable is put there.
    pub(crate) fn leave(&self, file: &Path) -> Result<(), Failure> {
        copy(&self.durable, file)
    }

    /// What is durable is put into `nvdimm`. The emulator's arguments that put the model before it.
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

/// Without the holes.
fn copy(from: &Path, to: &Path) -> Result<(), Failure> {
    run(Command::new("cp").arg("--sparse=always").arg(from).arg(to))
}
