//! The simulated disk after a failed sync.

use journal::File;
use pmem_sim::{Crashable, DiskImage, Fault, Model, SimDisk};

const PAGE: usize = 4096;

/// Returns the page's content in the base: as buffered reads show it, and as the disk has it.
fn shown(disk: &SimDisk) -> (Vec<u8>, Vec<u8>) {
    let (mut cached, mut on_disk) = (vec![0; PAGE], vec![0; PAGE]);
    disk.files().base.read_at(&mut cached, 0).unwrap();
    disk.files().base.read_pages(&mut on_disk, 0).unwrap();
    (cached, on_disk)
}

/// A disk whose base has a page of `1`, over which a page of `2` was written; the sync after that failed.
fn forgotten() -> SimDisk {
    let disk = SimDisk::new(0, Model::Disk);
    let base = disk.files().base;
    base.allocate(0..PAGE as u64).unwrap();
    base.write_at(&[1; PAGE], 0).unwrap();
    base.sync().unwrap();
    base.write_at(&[2; PAGE], 0).unwrap();
    disk.fail(Some(Fault::Error(disk.operation_count() + 1)));
    base.sync().unwrap_err();
    disk.fail(None);
    disk
}

fn after(image: &DiskImage) -> Vec<u8> {
    shown(&SimDisk::from_image(image, Model::Disk)).0
}

#[test]
fn failed_sync_is_decided_by_first_read() {
    let disk = forgotten();
    let images = disk.images(1000, 0);
    assert!(
        images.iter().any(|image| after(image).contains(&1)) && images.iter().any(|image| after(image).contains(&2))
    );
    let (cached, on_disk) = shown(&disk);
    assert_eq!(cached, [2; PAGE], "the cache has what was written");
    assert!(on_disk.contains(&1) && on_disk.contains(&2), "the disk has a part of it");
    // A sync does not write it.
    disk.files().base.sync().unwrap();
    assert_eq!(shown(&disk), (cached, on_disk.clone()));
    disk.images(1000, 0).iter().for_each(|image| assert_eq!(after(image), on_disk));
    let left = disk.killed().expect("the cache differs from the disk");
    assert_eq!(shown(&SimDisk::from_image(&left, Model::Disk)), ([2; PAGE].into(), on_disk));
}

#[test]
fn new_write_makes_forgotten_content_durable() {
    let disk = forgotten();
    let (cached, on_disk) = shown(&disk);
    disk.files().base.write_at(&cached, 0).unwrap();
    let images = disk.images(1000, 0);
    assert!(images.iter().any(|image| after(image) == on_disk) && images.iter().any(|image| after(image) == cached));
    disk.files().base.sync().unwrap();
    disk.images(1000, 0).iter().for_each(|image| assert_eq!(after(image), cached));
}
