//! Tests `serve` over TLS: with redis-cli, with wrong files, and with replaced files.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};

use rcgen::generate_simple_self_signed;
use rustix::process::Signal;

use crate::serve::Serving;
use crate::support::{Place, hikv, left_out, program};

/// Writes a new self-signed certificate and its key into the files that [`serve`] uses.
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

/// Returns the output of redis-cli for `PING`; `None` if there is no redis-cli with TLS.
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
fn certificates_are_renewed_at_sighup() {
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
    assert!(log.any(|line| line.contains("certificates reloaded")));
    assert_eq!(ping_by_redis_cli(&place, serving.tls_port()).unwrap(), "PONG\n");
    serving.stop(Signal::TERM);
}

#[test]
fn file_that_is_wrong_is_named() {
    let place = Place::new();
    let run = || crate::support::Ended(serve(&place).stdin(Stdio::null()).output().unwrap());
    run().failed(2, &["cert.pem", "No such file"]);
    certify(&place);
    place.write("key.pem", "nothing");
    run().failed(2, &["key.pem", "no private key"]);
}

/// Returns the reply to a line without TLS, as far as there is one.
fn said_in_plain(port: &str) -> Vec<u8> {
    let mut socket = TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
    socket.write_all(b"PING\r\n").unwrap();
    let mut answer = Vec::new();
    // The server may close the connection in any way.
    let _ = socket.read_to_end(&mut answer);
    answer
}

#[test]
fn tls_only_server_has_no_plain_port() {
    let place = Place::new();
    certify(&place);
    let store = place.store().display().to_string();
    let (certificate, key) = (place.file("cert.pem"), place.file("key.pem"));
    let files = ["--tls-cert", certificate.to_str().unwrap(), "--tls-key", key.to_str().unwrap()];
    let by_options = [&["serve", &store, "--tls-only", "--tls-addr", "127.0.0.1:0"], &files[..]].concat();
    let by_file = place.write(
        "hikv.conf",
        format!(
            "port 0\ntls-port 1\ntls-cert-file {}\ntls-key-file {}\n",
            certificate.to_str().unwrap(),
            key.to_str().unwrap()
        ),
    );
    let by_file = ["serve", &store, "--config", by_file.to_str().unwrap(), "--tls-addr", "127.0.0.1:0"];
    for arguments in [&by_options[..], &by_file[..]] {
        let mut command = program();
        command.args(arguments);
        let serving = Serving::spawned(command);
        assert!(!serving.banner().contains("Redis protocol"), "{}", serving.banner());
        let answer = said_in_plain(serving.tls_port());
        assert!(!answer.starts_with(b"+PONG"), "{answer:?}");
        match ping_by_redis_cli(&place, serving.tls_port()) {
            Some(answer) => assert_eq!(answer, "PONG\n"),
            None => left_out("there is no redis-cli with TLS"),
        }
        serving.stop(Signal::TERM);
    }
    place.run("serve", &["--tls-only"]).failed(2, &["TLS", "--tls-addr"]);
    place.run("serve", &files).failed(2, &["TLS", "--tls-addr"]);
    place.run("serve", &["--tls-addr", "127.0.0.1:0"]).failed(2, &["without a file for the certificate"]);
}
