//! What a guest of this kind boots: the program in its first file system, and a file system on a disk.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::disk::Image;
use crate::failure::Failure;
use crate::rustc::{answer, cargo, run};
use crate::vm::files::{self, FirstFiles, place_of};

/// What is run here beside what any guest needs, and the package of Debian that has it.
const TOOLS: [(&str, &str); 4] =
    [("mkfs.ext4", "e2fsprogs"), ("mkfs.xfs", "xfsprogs"), ("mkfs.btrfs", "btrfs-progs"), ("ndctl", "ndctl")];
const MODULES: [&str; 7] = ["virtio_pci", "virtio_blk", "ext4", "xfs", "btrfs", "nfit", "nd_pmem"];
/// What the guest runs beside it to make a file system on an NVDIMM, which must be told apart from a plain disk first.
const PROGRAMS: [&str; 3] = ["ndctl", "mkfs.ext4", "mkfs.xfs"];
const APPLETS: [&str; 7] = ["sh", "mount", "insmod", "poweroff", "cat", "mkdir", "mknod"];
/// As much as XFS wants.
pub(super) const DISK_BYTES: u64 = 320 << 20;

/// The first process: everything it needs is on the kernel's command line, behind its own name.
const INIT: &str = r#"#!/bin/sh
mount -t devtmpfs none /dev
mount -t proc none /proc
for module in $(cat /modules/order); do insmod /modules/$module; done
for word in $(cat /proc/cmdline); do
    case $word in fs=*) fs=${word#fs=};; run=*) run=${word#run=};; dax=*) dax=${word#dax=};; esac
done
mkdir /store
case $dax in
    new)
        mount -t sysfs none /sys
        ndctl create-namespace -f -e namespace0.0 -m fsdax -M mem >/dev/null
        if [ $fs = xfs ]; then mkfs.xfs -q -f -m reflink=0 /dev/pmem0; else mkfs.ext4 -q -F -b 4096 /dev/pmem0; fi
        mount -t $fs -o dax /dev/pmem0 /store;;
    old) mount -t $fs -o dax /dev/pmem0 /store;;
    *) mount -t $fs /dev/vda /store;;
esac || echo "lost: the file system cannot be mounted"
IFS=,
/bin/power_cut /store/store $run
poweroff -f
"#;

/// What does not change from boot to boot.
pub(super) struct Guest {
    pub(super) kernel: PathBuf,
    pub(super) initrd: PathBuf,
    work: PathBuf,
}

impl Guest {
    /// Made in `work`, where the kernel is kept for the next time.
    pub(super) fn make(work: &Path) -> Result<Guest, Failure> {
        let missing = files::missing(files::TOOLS.iter().chain(&TOOLS));
        if !missing.is_empty() {
            return Err(format!(
                "a guest needs more than is installed: apt-get install --no-install-recommends {}",
                missing.join(" ")
            ));
        }
        let (kernel, modules) = files::kernel(&work.join("kernel"))?;
        run(cargo().args(["build", "--quiet", "--package", "hikv", "--example", "power_cut"]))?;
        let initrd = work.join("initrd.cpio");
        let this = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut programs = vec![this.parent().expect("a directory").join("examples/power_cut")];
        programs.extend(PROGRAMS.iter().filter_map(|program| place_of(program)));
        let first = FirstFiles { init: INIT, applets: &APPLETS, modules: &MODULES, programs: &programs, files: &[] };
        first.pack(&work.join("root"), &modules, &initrd)?;
        Ok(Guest { kernel, initrd, work: work.to_owned() })
    }

    /// What an NVDIMM is kept in.
    pub(super) fn nvdimm(&self) -> PathBuf {
        self.work.join("nvdimm")
    }

    /// A disk with an empty file system.
    pub(super) fn formatted(&self, fs: &str) -> Result<Image, Failure> {
        let file = self.work.join("formatted");
        fs::File::create(&file).and_then(|file| file.set_len(DISK_BYTES)).map_err(|error| error.to_string())?;
        let force = if fs == "ext4" { "-F" } else { "-f" };
        answer(Command::new(format!("mkfs.{fs}")).arg("-q").arg(force).arg(&file))?;
        let image = fs::read(&file).map(|bytes| Image::of(&bytes)).map_err(|error| error.to_string());
        _ = fs::remove_file(&file);
        image
    }
}
