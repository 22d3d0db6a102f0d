//! Reads from sysfs whether flushed and fenced stores survive a power loss in the memory of a DAX device, or of the
//! block device of a DAX file system.
//!
//! A device's directory is in that of its region, which is in the directory of a bus, which names the provider.
//! With the domain `cpu_cache` a visible store is safe, with `memory_controller` a flushed one; without either
//! nothing is known. DRAM that is set apart at boot (`memmap=`, provider `e820`) is volatile, even if a domain is
//! reported.

use std::fs;
use std::path::Path;

/// Providers of volatile memory.
const VOLATILE_PROVIDERS: [&str; 1] = ["e820"];

/// The deepest stack of block devices: more than any machine has, and an end for cyclic directories.
const STACKED_COUNT_MAX: u32 = 8;

/// Returns true if the device whose directory in sysfs is `directory` (without symbolic links) is in a persistence
/// domain.
pub(crate) fn of_directory(directory: &Path) -> bool {
    let above = |name: &str| directory.ancestors().find_map(|parent| text_in(&parent.join(name)));
    let is_volatile = above("provider").is_some_and(|provider| VOLATILE_PROVIDERS.contains(&&*provider));
    !is_volatile && matches!(above("persistence_domain").as_deref(), Some("cpu_cache" | "memory_controller"))
}

/// Like [`of_directory`], for the block device with this number. False for a file system without a block device.
pub(crate) fn of_block_device(number: u64) -> bool {
    let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
    fs::canonicalize(format!("/sys/dev/block/{major}:{minor}")).is_ok_and(|directory| of_block(&directory, 0))
}

/// Returns true if the device, and every device that it is built of, is in a persistence domain.
fn of_block(directory: &Path, depth: u32) -> bool {
    let below: Vec<_> = fs::read_dir(directory.join("slaves")).into_iter().flatten().flatten().collect();
    if below.is_empty() || depth > STACKED_COUNT_MAX {
        return of_directory(directory);
    }
    below.iter().all(|slave| fs::canonicalize(slave.path()).is_ok_and(|below| of_block(&below, depth + 1)))
}

/// Returns the content of a file in sysfs, if it exists.
pub(crate) fn text_in(file: &Path) -> Option<String> {
    Some(fs::read_to_string(file).ok()?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::path::PathBuf;

    use super::*;

    /// Creates the directories that the kernel shows for the block device `name` of a namespace.
    fn block(root: &Path, name: &str, provider: &str, domain: Option<&str>) -> PathBuf {
        let bus = root.join(name).join("ndbus0");
        let device = bus.join("region0/namespace0.0/block").join(name);
        fs::create_dir_all(&device).unwrap();
        fs::write(bus.join("provider"), provider).unwrap();
        domain.iter().for_each(|domain| fs::write(bus.join("region0/persistence_domain"), domain).unwrap());
        device
    }

    #[test]
    fn only_reported_persistent_memory_is_durable() {
        for (provider, domain, survives) in [
            ("ACPI.NFIT\n", Some("cpu_cache\n"), true),
            ("ACPI.NFIT\n", Some("memory_controller\n"), true),
            ("ACPI.NFIT\n", Some("unknown\n"), false),
            ("ACPI.NFIT\n", Some("\n"), false),
            ("ACPI.NFIT\n", None, false),
            ("e820\n", None, false),
            ("e820\n", Some("memory_controller\n"), false),
        ] {
            let root = tempfile::tempdir().unwrap();
            let device = block(root.path(), "pmem0", provider, domain);
            assert_eq!(of_block(&device, 0), survives, "{provider:?} {domain:?}");
            let partition = device.join("pmem0p1");
            fs::create_dir(&partition).unwrap();
            assert_eq!(of_block(&partition, 0), survives, "a partition of {provider:?} {domain:?}");
        }
    }

    #[test]
    fn stacked_block_device_equals_its_worst() {
        let root = tempfile::tempdir().unwrap();
        let good = block(root.path(), "pmem0", "ACPI.NFIT", Some("memory_controller"));
        let bad = block(root.path(), "pmem1", "e820", None);
        for (below, survives) in [(&[&good][..], true), (&[&bad], false), (&[&good, &bad], false), (&[], false)] {
            let stacked = tempfile::tempdir_in(root.path()).unwrap();
            fs::create_dir(stacked.path().join("slaves")).unwrap();
            for device in below {
                symlink(device, stacked.path().join("slaves").join(device.file_name().unwrap())).unwrap();
            }
            assert_eq!(of_block(stacked.path(), 0), survives, "{below:?}");
        }
        let ring = root.path().join("ring/slaves");
        fs::create_dir_all(&ring).unwrap();
        symlink(ring.parent().unwrap(), ring.join("itself")).unwrap();
        assert!(!of_block(ring.parent().unwrap(), 0));
    }

    #[test]
    fn non_block_device_has_no_domain() {
        assert!(!of_block_device(0));
        assert!(!of_block_device(rustix::fs::makedev(4095, 1)));
    }
}
