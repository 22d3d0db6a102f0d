//! The guest of `cargo xtask vm`: the program in its initial file system, and a file system on a disk.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::disk::Image;
use super::machine;
use crate::failure::Failure;
use crate::rustc::{answer, cargo, run};
use crate::vm::files::{self, FirstFiles, place_of};

/// Further programs that make this guest, each with its Debian package.
const TOOLS: [(&str, &str); 4] =
    [("mkfs.ext4", "e2fsprogs"), ("mkfs.xfs", "xfsprogs"), ("mkfs.btrfs", "btrfs-progs"), ("ndctl", "ndctl")];
/// Modules for disks and NVDIMMs; [`NVDIMM_MODULES`] suffice for NVDIMMs.
pub(super) const MODULES: [&str; 7] = ["virtio_pci", "virtio_blk", "ext4", "xfs", "btrfs", "nfit", "nd_pmem"];
pub(super) const NVDIMM_MODULES: [&str; 6] = ["ext4", "xfs", "nfit", "nd_pmem", "dax_pmem", "device_dax"];
/// Programs that the guest runs to make a file system on an NVDIMM. The guest must first distinguish it from a disk.
const PROGRAMS: [&str; 3] = ["ndctl", "mkfs.ext4", "mkfs.xfs"];
const APPLETS: [&str; 8] = ["sh", "mount", "insmod", "poweroff", "cat", "mkdir", "mknod", "devmem"];
/// The minimum size that XFS accepts.
pub(super) const DISK_BYTES: u64 = 320 << 20;
const MEMORY_MIB: u32 = 512;
/// Physical address of the NVDIMM in a guest with this much memory.
const NVDIMM_AT: &str = "0x100000000";

/// The first process. All its parameters are on the kernel's command line, after its own name.
const INIT: &str = r#"#!/bin/sh
mount -t devtmpfs none /dev
mount -t proc none /proc
mount -t sysfs none /sys
for word in $(cat /proc/cmdline); do
    case $word in
        fs=*) fs=${word#fs=};; run=*) run=${word#run=};; dax=*) dax=${word#dax=};;
        model=*) devmem NVDIMM_AT 64 0x7e571337504d454d;; variant=*) export VARIANT=${word#variant=};;
    esac
done
for module in $(cat /modules/order); do insmod /modules/$module; done
mkdir /store
store=/store/store mode=fsdax
[ $fs = devdax ] && store=/dev/dax0.0 mode=devdax
[ $dax = new ] && ndctl create-namespace -f -e namespace0.0 -m $mode -M mem >/dev/null
case $fs,$dax in
    ext4,new) mkfs.ext4 -q -F -b 4096 /dev/pmem0;;
    xfs,new) mkfs.xfs -q -f -m reflink=0 /dev/pmem0;;
esac
case $fs,$dax in
    devdax,*) ;;
    *,no) mount -t $fs /dev/vda /store;;
    *) mount -t $fs -o dax /dev/pmem0 /store;;
esac || echo "lost: the file system cannot be mounted"
IFS=,
[ "$run" ] && /bin/power_cut $store $run
poweroff -f
"#;

/// Builds the program that runs in the guest.
pub(super) fn power_cut() -> Result<PathBuf, Failure> {
    run(cargo().args(["build", "--quiet", "--package", "hikv-testkit", "--example", "power_cut"]))?;
    let this = std::env::current_exe().map_err(|error| error.to_string())?;
    Ok(this.parent().expect("a directory").join("examples/power_cut"))
}

/// The parts that stay the same from boot to boot.
pub(super) struct Guest {
    kernel: PathBuf,
    initrd: PathBuf,
    work: PathBuf,
}

impl Guest {
    /// Makes a guest in `work`, where the kernel is kept for later runs; the guest runs `power_cut`.
    pub(super) fn make(work: &Path, power_cut: PathBuf, wanted: &[&str]) -> Result<Guest, Failure> {
        let missing = files::missing(files::TOOLS.iter().chain(&TOOLS));
        if !missing.is_empty() {
            return Err(format!(
                "a guest needs more than is installed: apt-get install --no-install-recommends {}",
                missing.join(" ")
            ));
        }
        let (kernel, modules) = files::kernel(&work.join("kernel"))?;
        let initrd = work.join("initrd.cpio");
        let mut programs = vec![power_cut];
        programs.extend(PROGRAMS.iter().filter_map(|program| place_of(program)));
        let init = INIT.replace("NVDIMM_AT", NVDIMM_AT);
        let first = FirstFiles { init: &init, applets: &APPLETS, modules: wanted, programs: &programs, files: &[] };
        first.pack(&work.join("root"), &modules, &initrd)?;
        Ok(Guest { kernel, initrd, work: work.to_owned() })
    }

    /// Returns the file of the NVDIMM.
    pub(super) fn nvdimm(&self) -> PathBuf {
        self.work.join("nvdimm")
    }

    /// Inserts an empty NVDIMM.
    pub(super) fn empty_nvdimm(&self, len_bytes: u64) -> Result<(), Failure> {
        let named_error = |error: std::io::Error| format!("the NVDIMM's file: {error}");
        fs::File::create(self.nvdimm()).and_then(|file| file.set_len(len_bytes)).map_err(named_error)
    }

    /// Returns the emulator's arguments for the NVDIMM.
    pub(super) fn nvdimm_arguments(&self) -> Result<[String; 4], Failure> {
        let file = self.nvdimm();
        let len_bytes = file.metadata().map_err(|error| format!("{}: {error}", file.display()))?.len();
        let memory = format!("memory-backend-file,id=nvdimm,share=on,mem-path={},size={len_bytes}", file.display());
        Ok(["-object".into(), memory, "-device".into(), "nvdimm,memdev=nvdimm".into()])
    }

    /// Boots the guest, with `words` for the first process.
    pub(super) fn boot(&self, words: &str, arguments: &[String]) -> Result<Child, Failure> {
        let mut qemu = machine(MEMORY_MIB, 1);
        qemu.arg("-kernel").arg(&self.kernel).arg("-initrd").arg(&self.initrd).args(arguments);
        qemu.args(["-append", &format!("console=ttyS0 quiet panic=-1 no_timer_check iomem=relaxed {words}")]);
        qemu.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        qemu.spawn().map_err(|error| format!("{qemu:?}: {error}"))
    }

    /// Returns a disk with an empty file system.
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
