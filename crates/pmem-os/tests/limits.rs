//! A limit on the length of files, past which the kernel sends a signal. A limit holds for the entire process, so
//! this test runs in a separate one.

use pmem::{MediumError, Space};
use pmem_os::{MapError, MapOptions, Mapped};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

const MIB: u64 = 1 << 20;

#[test]
fn file_size_limit_is_an_error() {
    let maximum = getrlimit(Resource::Fsize).maximum;
    setrlimit(Resource::Fsize, Rlimit { current: Some(8 * MIB), maximum }).unwrap();
    let place = tempfile::tempdir().unwrap();
    let medium = Mapped::create(&place.path().join("region"), 8 * MIB, MapOptions::default()).unwrap();
    assert_eq!(medium.limit_bytes(), 8 * MIB);
    let refused = medium.grow(8 * MIB + 1);
    assert_eq!(refused, Err(MediumError::Limit { wanted_bytes: 8 * MIB + 1, limit_bytes: 8 * MIB }));
    let longer = Mapped::create(&place.path().join("longer"), 9 * MIB, MapOptions::default());
    assert!(matches!(longer, Err(MapError::Limit { limit_bytes, .. }) if limit_bytes == 8 * MIB));
    assert!(!place.path().join("longer").exists());
}
