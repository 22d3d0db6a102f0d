//! `serve` by TLS: to redis-cli, with files that are wrong, and with ones that are replaced.

use std::io::{BufRead, BufReader, ErrorKind};
use std::process::{Command, Stdio};

use rcgen::generate_simple_self_signed;
use rustix::process::Signal;

use crate::serve::Serving;
use crate::support::{Place, hikv, left_out};

/// Puts a new certificate, which is its own authority, and its key into the files that [`serve`] names.
fn certify(place: &Place) {
    let certified = generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    place.write("cert.pem", certified.cert.pem());
    place.write("key.pem", certified.signing_key.serialize_pem());
}

fn serve(place: &Place) -> Command {
    let (certificate, key) = (place.file("cert.pem"), place.file("key.pem"));
    let tls =
        ["--tls-addr", "127.0.0.1:0", "--tls-cert", certificate.to_str().unwrap(), "--tls-key", key.to_str().unwrap()];
    hikv("serve", &place.store(), &[&["--addr", "127.0.0.1:0"], &tls[..]].concat())
}

/// What redis-cli prints for `PING`; nothing where there is none that knows TLS.
fn ping_by_redis_cli(place: &Place, port: &str) -> Option<String> {
    let mut command = Command::new("redis-cli");
    command.args(["--tls", "--sni", "localhost", "--cacert"]).arg(place.file("cert.pem")).args(["-p", port, "PING"]);
    match command.output() {
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        outcome => {
            let output = outcome.unwrap();
            let said = [output.stdout, output.stderr].concat();
            Some(String::from_utf8(said).unwrap()).filter(|said| !said.contains("Unrecognized option"))
        }
    }
}

#[test]
fn redis_cli_is_served_and_certificates_are_renewed_at_sighup() {
    let place = Place::new();
    certify(&place);
    let mut serving = Serving::spawned(serve(&place));
    let Some(answer) = ping_by_redis_cli(&place, serving.tls_port()) else {
        left_out("there is no redis-cli with TLS");
        serving.stop(Signal::TERM);
        return;
    };
    assert_eq!(answer, "PONG\n");
    certify(&place);
    let answer = ping_by_redis_cli(&place, serving.tls_port()).unwrap();
    assert!(answer.contains("certificate"), "the old certificate is served: {answer}");
    serving.signal(Signal::HUP);
    let mut log = BufReader::new(serving.child.stderr.take().unwrap()).lines().map(Result::unwrap);
    assert!(log.any(|line| line.contains("the certificates were read anew")));
    assert_eq!(ping_by_redis_cli(&place, serving.tls_port()).unwrap(), "PONG\n");
    serving.stop(Signal::TERM);
}

#[test]
fn a_file_that_is_wrong_is_named() {
    let place = Place::new();
    let run = || crate::support::Ended(serve(&place).stdin(Stdio::null()).output().unwrap());
    run().failed(2, &["cert.pem", "No such file"]);
    certify(&place);
    place.write("key.pem", "nothing");
    run().failed(2, &["key.pem", "no private key"]);
}
