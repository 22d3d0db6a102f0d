//! Files that every guest boots: Debian's kernel, and an initial file system in memory with busybox, modules,
//! programs and an init script.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::Failure;
use crate::rustc::{answer, run};

/// Programs that make a guest, each with its Debian package.
pub(crate) const TOOLS: [(&str, &str); 7] = [
    ("qemu-system-x86_64", "qemu-system-x86"),
    ("busybox", "busybox-static"),
    ("cpio", "cpio"),
    ("xz", "xz-utils"),
    ("modprobe", "kmod"),
    ("dpkg", "dpkg"),
    ("apt-get", "apt"),
];

/// The initial file system of a guest.
pub(crate) struct FirstFiles<'a> {
    /// The first process: a script.
    pub(crate) init: &'a str,
    /// Names under which busybox is linked.
    pub(crate) applets: &'a [&'a str],
    /// Kernel modules; their dependencies are added. Loaded in the order of `/modules/order`.
    pub(crate) modules: &'a [&'a str],
    /// Programs for `/bin`; their shared libraries are added.
    pub(crate) programs: &'a [PathBuf],
    /// Other files, for `/`.
    pub(crate) files: &'a [PathBuf],
}

/// Lists the packages of tools that are not installed.
pub(crate) fn missing<'a>(tools: impl IntoIterator<Item = &'a (&'a str, &'a str)>) -> Vec<&'a str> {
    tools.into_iter().filter(|(tool, _)| place_of(tool).is_none()).map(|&(_, package)| package).collect()
}

pub(crate) fn place_of(tool: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let dirs = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]);
    dirs.map(|dir| dir.join(tool)).find(|file| file.is_file())
}

/// Downloads and unpacks Debian's current kernel once; returns the kernel and the directory of its modules.
pub(crate) fn kernel(dir: &Path) -> Result<(PathBuf, PathBuf), Failure> {
    if !dir.join("boot").is_dir() {
        fs::create_dir_all(dir).map_err(|error| format!("{}: {error}", dir.display()))?;
        let depends = answer(Command::new("apt-cache").args(["depends", "linux-image-amd64"]))?;
        let package = depends.lines().find_map(|line| line.trim().strip_prefix("Depends: "));
        let package = package.ok_or("apt-get finds no kernel; run apt-get update")?;
        run(Command::new("apt-get").args(["download", "-qq", package]).current_dir(dir))?;
        for file in entries(dir)?.iter().filter(|file| file.extension().is_some_and(|end| end == "deb")) {
            run(Command::new("dpkg").arg("-x").arg(file).arg(dir))?;
            _ = fs::remove_file(file);
        }
        let modules = only(&dir.join("lib/modules"), "")?;
        run(Command::new("depmod").arg("-b").arg(dir).arg(modules.file_name().expect("a name")))?;
    }
    Ok((unpacked(&dir.join("boot"))?, only(&dir.join("lib/modules"), "")?))
}

/// Unpacks the kernel image: the emulated processor would take longer for that than for the rest of the boot.
fn unpacked(boot: &Path) -> Result<PathBuf, Failure> {
    let kernel = boot.join("vmlinux");
    if !kernel.is_file() {
        let packed = only(boot, "vmlinuz")?;
        let bytes = fs::read(&packed).map_err(|error| format!("{}: {error}", packed.display()))?;
        let payload = payload(&bytes).ok_or_else(|| format!("{}: not a kernel image", packed.display()))?;
        let (from, to) = (boot.join("payload.xz"), boot.join("payload"));
        fs::write(&from, payload).map_err(|error| format!("{}: {error}", from.display()))?;
        run(Command::new("xz").args(["--decompress", "--force"]).arg(&from))?;
        fs::rename(&to, &kernel).map_err(|error| format!("{}: {error}", to.display()))?;
    }
    Ok(kernel)
}

/// Returns the packed payload of a kernel image, as the header of the boot protocol describes it (`setup_sects`,
/// `payload_offset`, `payload_length`); its unpacked length follows it.
fn payload(bytes: &[u8]) -> Option<&[u8]> {
    let half = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?) as usize);
    let start = (usize::from(*bytes.get(0x1f1)?) + 1) * 512 + half(0x248)?;
    bytes.get(start..start + half(0x24c)?.checked_sub(4)?)
}

fn entries(dir: &Path) -> Result<Vec<PathBuf>, Failure> {
    let entries = fs::read_dir(dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    Ok(entries.flatten().map(|entry| entry.path()).collect())
}

fn only(dir: &Path, beginning: &str) -> Result<PathBuf, Failure> {
    let begins = |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(beginning));
    entries(dir)?.into_iter().find(begins).ok_or_else(|| format!("{}: nothing named {beginning}…", dir.display()))
}

impl FirstFiles<'_> {
    /// Lays out the files in `root` and packs them.
    pub(crate) fn pack(&self, root: &Path, modules: &Path, initrd: &Path) -> Result<(), Failure> {
        let with_path = |error: std::io::Error| format!("{}: {error}", root.display());
        _ = fs::remove_dir_all(root);
        for dir in ["bin", "dev", "etc", "proc", "sys", "modules"] {
            fs::create_dir_all(root.join(dir)).map_err(with_path)?;
        }
        fs::copy(place_of("busybox").ok_or("busybox is not installed")?, root.join("bin/busybox"))
            .map_err(with_path)?;
        for applet in self.applets {
            symlink("busybox", root.join("bin").join(applet)).map_err(with_path)?;
        }
        fs::write(root.join("init"), self.init).map_err(with_path)?;
        fs::set_permissions(root.join("init"), fs::Permissions::from_mode(0o755)).map_err(with_path)?;
        add_modules(root, modules, self.modules)?;
        self.programs.iter().try_for_each(|program| add_program(root, program))?;
        for file in self.files {
            fs::copy(file, root.join(file.file_name().expect("a name"))).map_err(with_path)?;
        }
        let pack = format!("cd '{}' && find . | cpio -o -H newc --quiet > '{}'", root.display(), initrd.display());
        run(Command::new("sh").args(["-c", &pack]))
    }
}

/// Adds modules with their dependencies, in the order of loading.
fn add_modules(root: &Path, modules: &Path, wanted: &[&str]) -> Result<(), Failure> {
    let (version, base) =
        (modules.file_name().expect("a name"), modules.ancestors().nth(3).expect("below lib/modules"));
    let (mut order, mut seen) = (String::new(), BTreeSet::new());
    for module in wanted {
        let mut command = Command::new("modprobe");
        command.args(["-C", "/dev/null", "-d"]).arg(base).arg("-S").arg(version).args(["--show-depends", module]);
        for file in answer(&mut command)?.lines().filter_map(|line| line.strip_prefix("insmod ")) {
            let file = Path::new(file.trim());
            let name = file.file_name().expect("a name").to_string_lossy().into_owned();
            if seen.insert(name.clone()) {
                fs::copy(file, root.join("modules").join(&name))
                    .map_err(|error| format!("{}: {error}", file.display()))?;
                order += &format!("{name}\n");
            }
        }
    }
    fs::write(root.join("modules/order"), order).map_err(|error| error.to_string())
}

/// Adds a program and its shared libraries.
fn add_program(root: &Path, program: &Path) -> Result<(), Failure> {
    let with_path = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
    fs::copy(program, root.join("bin").join(program.file_name().expect("a name")))
        .map_err(|error| with_path(program, error))?;
    let linked = answer(Command::new("ldd").arg(program))?;
    for library in linked.split_whitespace().filter(|word| word.starts_with('/')).map(Path::new) {
        let to = root.join(library.strip_prefix("/").expect("it is absolute"));
        fs::create_dir_all(to.parent().expect("a directory")).map_err(|error| with_path(&to, error))?;
        fs::copy(library, &to).map_err(|error| with_path(library, error))?;
    }
    Ok(())
}
