//! The device's obligations by the specifications, as a list that is checked line by line.

use std::panic::{AssertUnwindSafe, catch_unwind};

use nvme::Status;

use crate::support::{Bench, is_given};
use crate::{authentication, controllers, keys, transport};

/// A line, and its check.
type Line = (&'static str, fn(&Bench));

const LIST: &[Line] = &[
    ("discovery: the log contains the subsystem and its address", controllers::discovery),
    ("discovery: the controller has its own pages, and no I/O queues", controllers::discovery_controller),
    ("properties: capabilities, version; enabling, shutdown, reset", controllers::properties),
    ("connect: names, queues, entries, controllers; each refusal", controllers::connect),
    ("commands come in order: connect, enable, then others", controllers::order),
    ("identify 01h: the controller, with its limits", controllers::identify_controller),
    ("identify 00h, 02h, 03h, 05h, 06h, 07h, 08h, 1Ch", controllers::identify_pages),
    ("properties: a shutdown notification, after which nothing is executed (0Ch)", controllers::shutdown),
    ("controllers: several of one host and of others, and a broken path", controllers::paths),
    ("log pages 00h, 01h, 02h, 03h, 05h, 12h, 13h, and parts of them", controllers::logs),
    ("features 07h, 0Bh, 0Fh, 20h", controllers::features),
    ("feature 06h: a volatile cache, unless completions survive a power failure", controllers::write_cache),
    ("feature 20h: belongs to the namespace, and survives a restart", controllers::feature_of_namespace),
    ("keep-alive: a controller of a silent host ends, with its queues", controllers::keep_alive),
    ("asynchronous events: four commands, completed when little space is left", controllers::events),
    ("abort: not aborted", controllers::abort),
    ("store and retrieve, in the capsule and without data", keys::store_and_retrieve),
    ("retrieve: truncated to the buffer, with the full length", keys::retrieve_cut),
    ("store: if there, if absent (87h, 89h)", keys::store_conditions),
    ("store: without compression; both conditions at once", keys::store_options),
    ("delete, exist (87h); delete of a missing key, with feature 20h", keys::delete_and_exist),
    ("list: in order, from a key on, as many as fit in the buffer", keys::list),
    ("list: with an engine that builds the order on first use", keys::list_first),
    ("range: keys and values, and the buffer size for the next item", keys::range),
    ("flush, of the namespace and of all", keys::flush),
    ("keys of 0 bytes (86h of store and retrieve, 02h of delete and exist), and of 17 (02h)", keys::key_sizes),
    ("values above the limit (85h)", keys::value_sizes),
    ("a full namespace (81h)", keys::full),
    ("concurrent stores, some without space (81h): each has its own outcome", keys::full_in_a_group),
    ("a write-protected store (20h)", keys::write_protected),
    ("damage (88h, of retrieve)", keys::damaged),
    ("other namespaces, opcodes, options and fused commands", keys::wrong_commands),
    ("two concurrent commands with one identifier (03h)", transport::same_identifier),
    ("data descriptors: kinds, lengths, offsets", transport::descriptors),
    ("R2T: values above 8 KiB, many at once, up to 1 MiB", transport::ready_to_transfer),
    ("digests of headers, of data, of both", transport::digests),
    ("data with a wrong digest (22h): in the capsule, and after R2T", transport::corrupt_data),
    ("limits: 64 queues, 128 entries, transfers", controllers::queue_limits),
    ("unlisted hosts are refused", controllers::hosts),
    ("DH-HMAC-CHAP: one way, both ways; each refusal", authentication::authentication),
];

/// Statuses that hosts understand and devices here never return, or cannot be made to return.
const NOT_GIVEN: &[(Status, &str)] = &[
    (Status::DATA_TRANSFER_ERROR, "data that contradicts its request ends the connection"),
    (Status::INTERNAL_ERROR, "a disk that fails under a device: the test `program device` of `hikv-cli`"),
    (Status::NAMESPACE_NOT_READY, "the namespace is ready as long as the device runs"),
    (Status::ABORTED_QUEUE_DELETED, "a queue ends with its connection, so no completion can be sent"),
    (Status::KEEP_ALIVE_EXPIRED, "the same"),
    (Status::KEEP_ALIVE_INVALID, "any time is valid"),
];

#[test]
fn every_requirement_is_met() {
    let lines = [false, true].into_iter().flat_map(|by_shm| LIST.iter().map(move |line| (by_shm, line)));
    let failed: Vec<_> = lines.filter(|(by_shm, line)| !passes(*by_shm, line)).map(|(_, line)| line.0).collect();
    assert!(failed.is_empty(), "of {}: {failed:#?}", LIST.len());
    let is_excepted = |status: &&Status| NOT_GIVEN.iter().any(|(excepted, _)| excepted.is(**status));
    let (excepted, due): (Vec<&Status>, Vec<&Status>) = Status::ALL.iter().partition(is_excepted);
    let missing: Vec<_> = due.into_iter().filter(|status| !is_given(**status)).collect();
    assert!(missing.is_empty(), "statuses that no line returns: {missing:#?}");
    let given: Vec<_> = excepted.into_iter().filter(|status| is_given(**status)).collect();
    assert!(given.is_empty(), "returned, but listed as never returned: {given:#?}");
}

#[expect(clippy::print_stdout, reason = "the list is for reading")]
fn passes(by_shm: bool, (line, check): &Line) -> bool {
    let bench = Bench::new().by_shm(by_shm);
    let is_passed = catch_unwind(AssertUnwindSafe(|| check(&bench))).is_ok();
    let transport = if by_shm { "memory" } else { "tcp" };
    println!("{} {transport}: {line}", if is_passed { "passed" } else { "FAILED" });
    is_passed
}
