//! Reads that a probe sees: the model of slow memory only charges for calls that it sees.

use std::sync::Mutex;
use std::sync::atomic::Ordering;

use pmem::{Bytes, Offset, Probe, Probed, Residency, Span};
use pmem_os::{MapOptions, Mapped};

#[derive(Default)]
struct Heard(Mutex<Vec<Span>>);

impl Probe for Heard {
    fn read(&self, span: Span) {
        self.0.lock().unwrap().push(span);
    }

    fn loaded(&self, span: Span) {
        self.0.lock().unwrap().push(span);
    }
}

#[test]
fn every_read_method_is_listed() {
    let place = tempfile::tempdir().unwrap();
    let medium = Mapped::create(&place.path().join("region"), 1 << 20, MapOptions::default()).unwrap();
    let medium = Probed::with_probe(medium, Heard::default());
    let at = Offset(4096);
    let reads: [(&dyn Fn(), u64); 5] = [
        (&|| assert_eq!(medium.load(at, Ordering::Acquire), 0), 8),
        (&|| assert_eq!(medium.peek(at), 0), 8),
        (&|| assert_eq!(medium.load4(at), [0; 4]), 32),
        (&|| assert_eq!(medium.match4(at, 1), 0), 32),
        // SAFETY: no code stores to the span while the slice lives.
        (&|| assert_eq!(unsafe { medium.bytes(at.span(300)) }.unwrap().len(), 300), 300),
    ];
    for (read, len_bytes) in reads {
        read();
        let heard = std::mem::take(&mut *medium.probe().0.lock().unwrap());
        assert_eq!(heard, [at.span(len_bytes)]);
    }
}
