//! TLS: which clients are served, which are refused, and that it changes nothing else.

use std::fs;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use crate::common::{Client, TestServer, Value, bulk, ok, patterned};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair, date_time_ymd,
};
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned, SupportedProtocolVersion};
use server::{ClientCertificate, Config, HttpPort, Tls, TlsFiles};
use tempfile::TempDir;

type TlsClient = Client<StreamOwned<ClientConnection, TcpStream>>;

/// A certificate authority, and the files of the certificates that it issued to the server.
struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    dir: TempDir,
}

impl Authority {
    fn new() -> Authority {
        let mut params = CertificateParams::new(Vec::new()).expect("no names are good names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let issuer = CertifiedIssuer::self_signed(params, key).expect("an authority");
        let authority = Authority { issuer, dir: tempfile::tempdir().expect("a temporary directory") };
        fs::write(authority.dir.path().join("ca.pem"), authority.issuer.pem()).expect("the file is written");
        authority.certify("server");
        authority
    }

    /// Issues a certificate for `localhost` into the files NAME.pem and NAME.key.
    fn certify(&self, name: &str) -> (CertificateDer<'static>, KeyPair) {
        self.certify_with(name, |_| {})
    }

    /// The same, for a certificate that is modified before it is signed.
    fn certify_with(
        &self,
        name: &str,
        change: impl FnOnce(&mut CertificateParams),
    ) -> (CertificateDer<'static>, KeyPair) {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(vec!["localhost".into()]).expect("a good name");
        change(&mut params);
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        fs::write(self.dir.path().join(format!("{name}.pem")), certificate.pem()).expect("the file is written");
        fs::write(self.dir.path().join(format!("{name}.key")), key.serialize_pem()).expect("the file is written");
        (certificate.der().clone(), key)
    }

    fn files(&self, client_certificate: ClientCertificate) -> TlsFiles {
        TlsFiles {
            certificate: self.dir.path().join("server.pem"),
            key: self.dir.path().join("server.key"),
            client_ca: Some(self.dir.path().join("ca.pem")),
            client_certificate,
        }
    }

    fn serve(&self, client_certificate: ClientCertificate) -> TestServer {
        let tls = Tls::new("127.0.0.1:0", self.files(client_certificate));
        TestServer::with(Config { threads: 2, tls: Some(tls), ..Config::default() })
    }

    /// Returns the configuration of a client that trusts this authority.
    fn client_config(&self, version: &'static SupportedProtocolVersion) -> ClientConfig {
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let mut trusted = RootCertStore::empty();
        trusted.add(self.issuer.der().clone()).expect("an authority");
        let builder = builder.with_protocol_versions(&[version]).expect("a known version");
        builder.with_root_certificates(trusted).with_no_client_auth()
    }

    /// The same, with a certificate of `issuer`.
    fn certified_config(&self, issuer: &Authority) -> ClientConfig {
        self.config_with(issuer.certify("client"), &TLS13)
    }

    fn config_with(
        &self,
        (certificate, key): (CertificateDer<'static>, KeyPair),
        version: &'static SupportedProtocolVersion,
    ) -> ClientConfig {
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let mut trusted = RootCertStore::empty();
        trusted.add(self.issuer.der().clone()).expect("an authority");
        let builder = builder.with_protocol_versions(&[version]).expect("a known version");
        let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
        builder.with_root_certificates(trusted).with_client_auth_cert(vec![certificate], key).expect("a key that fits")
    }
}

fn connect(addr: SocketAddr, config: ClientConfig) -> StreamOwned<ClientConnection, TcpStream> {
    let socket = TcpStream::connect(addr).expect("the server listens");
    socket.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout is set");
    let name = "localhost".try_into().expect("a good name");
    StreamOwned::new(ClientConnection::new(Arc::new(config), name).expect("a good configuration"), socket)
}

fn client(server: &TestServer, config: ClientConfig) -> TlsClient {
    Client::over(connect(server.tls_addr(), config))
}

/// Returns the error that a refused client sees.
fn refusal(server: &TestServer, config: ClientConfig) -> io::Error {
    let mut stream = connect(server.tls_addr(), config);
    let outcome = stream.write_all(b"PING\r\n").and_then(|()| stream.read_exact(&mut [0; 7]));
    outcome.expect_err("the client is refused")
}

#[test]
fn tls_and_plain_clients_are_served() {
    let authority = Authority::new();
    let server = authority.serve(ClientCertificate::No);
    let mut plain = server.client();
    for version in [&TLS12, &TLS13] {
        let mut client = client(&server, authority.client_config(version));
        assert_eq!(client.say("SET k v"), ok());
        assert_eq!(plain.say("GETDEL k"), bulk("v"));
        assert_eq!(client.say("QUIT"), ok());
        // An end that the server did not announce would be an error.
        assert!(client.is_at_end());
    }
}

#[test]
fn large_values_and_long_pipelines_pass_whole() {
    let authority = Authority::new();
    let server = authority.serve(ClientCertificate::No);
    let mut client = client(&server, authority.client_config(&TLS13));
    let large = patterned(40 << 20);
    assert_eq!(client.call(&[b"SET", &b"large"[..], &large]), ok());
    client.send(b"GET large\r\nPING\r\n");
    assert_eq!(client.reply(), bulk(&large));
    assert_eq!(client.reply(), Value::Simple("PONG".into()));
    let count = 20_000;
    client.call(&[b"SET", &b"small"[..], &patterned(100)]);
    client.send(&b"GET small\r\n".repeat(count));
    (0..count).for_each(|_| assert_eq!(client.reply(), bulk(patterned(100))));
}

/// The unread data of one client fills the sockets while the other client is served.
#[test]
fn non_reading_tls_client_stalls_no_other() {
    let authority = Authority::new();
    let tls = Tls::new("127.0.0.1:0", authority.files(ClientCertificate::No));
    let server = TestServer::with(Config { threads: 1, tls: Some(tls), ..Config::default() });
    let (mut idle, mut busy) = (client(&server, authority.client_config(&TLS13)), server.client());
    assert_eq!(busy.call(&[b"SET", &b"large"[..], &patterned(40 << 20)]), ok());
    idle.send(b"GET large\r\n");
    (0..1_000).for_each(|_| assert_eq!(busy.say("PING"), Value::Simple("PONG".into())));
    assert_eq!(idle.reply(), bulk(patterned(40 << 20)));
}

#[test]
fn clients_without_valid_certificate_are_refused() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let server = authority.serve(ClientCertificate::Yes);
    let mut known = client(&server, authority.certified_config(&authority));
    assert_eq!(known.say("PING"), Value::Simple("PONG".into()));
    refusal(&server, authority.client_config(&TLS13));
    refusal(&server, authority.certified_config(&stranger));

    let server = authority.serve(ClientCertificate::Optional);
    for config in [authority.client_config(&TLS13), authority.certified_config(&authority)] {
        assert_eq!(client(&server, config).say("PING"), Value::Simple("PONG".into()));
    }
    refusal(&server, authority.certified_config(&stranger));
}

#[test]
fn plain_text_is_refused_silence_is_closed() {
    let authority = Authority::new();
    // Time enough for the handshake of the established client on a busy machine.
    let handshake_max = Duration::from_secs(3);
    let tls = Tls { handshake_max, ..Tls::new("127.0.0.1:0", authority.files(ClientCertificate::No)) };
    let server = TestServer::with(Config { threads: 1, tls: Some(tls), ..Config::default() });
    let mut plain = Client::connect(server.tls_addr());
    plain.send(b"PING\r\n");
    assert!(!plain.rest().starts_with(b"+PONG"));
    let mut established = client(&server, authority.client_config(&TLS13));
    assert_eq!(established.say("PING"), Value::Simple("PONG".into()));
    // It returns once the server has closed the connection.
    assert!(Client::connect(server.tls_addr()).is_at_end());
    assert_eq!(established.say("PING"), Value::Simple("PONG".into()));
}

#[test]
fn files_that_cannot_be_used_are_named() {
    let (authority, other) = (Authority::new(), Authority::new());
    let good = authority.files(ClientCertificate::Yes);
    let empty = authority.dir.path().join("empty.pem");
    fs::write(&empty, "nothing\n").expect("the file is written");
    let missing = authority.dir.path().join("missing.pem");
    let foreign_key = other.dir.path().join("server.key");
    let file = |name: &str, text: &str| {
        let path = authority.dir.path().join(name);
        fs::write(&path, text).expect("the file is written");
        path
    };
    let encrypted =
        file("encrypted.key", "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIHj\n-----END ENCRYPTED PRIVATE KEY-----\n");
    let of_version_1 = file("old.pem", include_str!("version-1.pem"));
    let cases = [
        (
            TlsFiles { key: encrypted, ..good.clone() },
            "encrypted.key: the private key is encrypted; decrypt it with `openssl pkey",
        ),
        (TlsFiles { certificate: of_version_1, ..good.clone() }, "the certificate is X.509 version 1"),
        (TlsFiles { certificate: missing.clone(), ..good.clone() }, "missing.pem: No such file"),
        (TlsFiles { certificate: empty.clone(), ..good.clone() }, "empty.pem: no certificate in PEM format found"),
        (TlsFiles { key: empty.clone(), ..good.clone() }, "empty.pem: no private key in PEM format found"),
        (TlsFiles { key: foreign_key, ..good.clone() }, "server.key: keys may not be consistent"),
        (TlsFiles { client_ca: Some(missing), ..good.clone() }, "missing.pem: No such file"),
        (TlsFiles { client_ca: None, ..good.clone() }, "without a file of their authorities"),
    ];
    let dir = tempfile::tempdir().expect("a temporary directory");
    let store = hikv::Options::new().open(dir.path()).expect("the store opens");
    for (files, said) in cases {
        let config = Config {
            addrs: vec!["127.0.0.1:0".into()],
            tls: Some(Tls::new("127.0.0.1:0", files)),
            ..Config::default()
        };
        let outcome = server::Server::bind(store.clone(), config, server::StopHandle::new()).map(|_| ());
        let error = outcome.expect_err("the files are wrong").to_string();
        assert!(error.contains(said), "'{said}' is missing: {error}");
    }
}

#[test]
fn certificates_are_replaced_while_it_serves() {
    let (authority, other) = (Authority::new(), Authority::new());
    let server = authority.serve(ClientCertificate::No);
    let mut old = client(&server, authority.client_config(&TLS13));
    let dir = other.dir.path().display();
    let Value::Error(text) = old.say(&format!("CONFIG SET tls-cert-file {dir}/server.pem")) else {
        panic!("not refused")
    };
    assert!(
        text.contains("'tls-cert-file') - Unable to update TLS configuration: ") && text.contains("server.key"),
        "{text}"
    );
    assert_eq!(client(&server, authority.client_config(&TLS13)).say("PING"), Value::Simple("PONG".into()));

    assert_eq!(old.say(&format!("CONFIG SET tls-cert-file {dir}/server.pem tls-key-file {dir}/server.key")), ok());
    refusal(&server, authority.client_config(&TLS13));
    let mut new = client(&server, other.client_config(&TLS13));
    assert_eq!(old.say("SET k v"), ok());
    assert_eq!(new.say("GET k"), bulk("v"));
}

/// Returns the HTTP port's response to a request for its metrics.
fn metrics(port: &HttpPort, config: ClientConfig) -> io::Result<String> {
    let mut stream = connect(port.local_addr(), config);
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).map(|_| answer)
}

#[test]
fn http_port_uses_the_same_certificate() {
    let authority = Authority::new();
    let tls = Tls::new("127.0.0.1:0", authority.files(ClientCertificate::No));
    let http = Some("127.0.0.1:0".into());
    let server = TestServer::with(Config { http, http_tls: true, tls: Some(tls), ..Config::default() });
    let port = server.http.as_ref().expect("it is watched");
    assert_eq!(port.scheme(), "https");
    for version in [&TLS12, &TLS13] {
        let answer = metrics(port, authority.client_config(version)).expect("the answer ends as TLS ends");
        assert!(answer.starts_with("HTTP/1.1 200 OK") && answer.ends_with("# EOF\n"), "{answer}");
    }
    for pieces in [&["GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"][..], &["G", "ET / HTTP/1.0\r\n"]] {
        let mut plain = TcpStream::connect(port.local_addr()).expect("the port listens");
        for piece in pieces {
            plain.write_all(piece.as_bytes()).expect("a request is sent");
        }
        plain.shutdown(Shutdown::Write).expect("the connection is open");
        let mut answer = String::new();
        plain.read_to_string(&mut answer).expect("the answer ends before the connection does");
        assert!(answer.starts_with("HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain"), "{answer}");
        assert!(answer.ends_with("this port uses TLS; use https://\n"), "{answer}");
    }
    // A renewed certificate also applies here.
    let renewed = Authority::new();
    for name in ["server.pem", "server.key"] {
        fs::copy(renewed.dir.path().join(name), authority.dir.path().join(name)).expect("the file is replaced");
    }
    let path = authority.dir.path().join("server.pem").display().to_string();
    assert_eq!(server.client().call(&["CONFIG", "SET", "tls-cert-file", &path]), ok());
    assert!(metrics(port, authority.client_config(&TLS13)).is_err());
    assert!(metrics(port, renewed.client_config(&TLS13)).is_ok());
}

#[test]
fn http_port_requires_client_certificates() {
    let authority = Authority::new();
    let tls = Tls::new("127.0.0.1:0", authority.files(ClientCertificate::Yes));
    let http = Some("127.0.0.1:0".into());
    let server = TestServer::with(Config { http, http_tls: true, tls: Some(tls), ..Config::default() });
    let port = server.http.as_ref().expect("it is watched");
    assert!(metrics(port, authority.client_config(&TLS13)).is_err());
    assert!(metrics(port, authority.certified_config(&authority)).is_ok());
    let without = HttpPort::open(&Config { http: Some("127.0.0.1:0".into()), http_tls: true, ..Config::default() });
    assert!(without.map(|_| ()).expect_err("there is no certificate").to_string().contains("there is no certificate"));
}

/// The log of this process.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("nobody panics with it").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns the lines of all tests' servers; one process has one log.
fn logged() -> String {
    static LINES: LazyLock<Lines> = LazyLock::new(|| {
        let lines = Lines::default();
        let writer = lines.clone();
        tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).init();
        lines
    });
    String::from_utf8(LINES.0.lock().expect("nobody panics with it").clone()).expect("a text")
}

#[test]
fn invalid_certificates_are_refused_and_logged() {
    logged();
    let authority = Authority::new();
    let server = authority.serve(ClientCertificate::Yes);
    let expired = |params: &mut CertificateParams| params.not_after = date_time_ymd(2020, 1, 1);
    let not_yet = |params: &mut CertificateParams| params.not_before = date_time_ymd(2999, 1, 1);
    let for_servers = |params: &mut CertificateParams| {
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    };
    let changes: [&dyn Fn(&mut CertificateParams); 3] = [&expired, &not_yet, &for_servers];
    for version in [&TLS12, &TLS13] {
        for change in changes {
            refusal(&server, authority.config_with(authority.certify_with("client", change), version));
        }
        let known = authority.config_with(authority.certify("client"), version);
        assert_eq!(client(&server, known).say("PING"), Value::Simple("PONG".into()));
        refusal(&server, authority.config_with(Authority::new().certify("client"), version));
        refusal(&server, authority.client_config(version));
    }
    let log = logged();
    let failures: Vec<&str> = log.lines().filter(|line| line.contains("TLS handshake failed")).collect();
    for why in ["expired", "not valid yet", "extended key usage", "BadSignature", "peer sent no certificates"] {
        assert!(failures.iter().any(|line| line.contains(why) && line.contains("127.0.0.1:")), "{why}: {failures:#?}");
    }
}

#[test]
fn handshake_keeps_its_first_certificate() {
    let (authority, renewed) = (Authority::new(), Authority::new());
    let server = authority.serve(ClientCertificate::Yes);
    let mut admin = server.client();
    let mut begun = connect(server.tls_addr(), authority.certified_config(&authority));
    // The server has received the client's first message when its own has arrived.
    begun.conn.complete_io(&mut begun.sock).map(|_| ()).unwrap_or_default();
    let dir = renewed.dir.path().display();
    let change = format!(
        "CONFIG SET tls-cert-file {dir}/server.pem tls-key-file {dir}/server.key tls-ca-cert-file {dir}/ca.pem"
    );
    assert_eq!(admin.say(&change), ok());
    assert_eq!(Client::over(begun).say("SET k v"), ok());
    // From now on other certificates apply, on both sides.
    refusal(&server, authority.certified_config(&authority));
    refusal(&server, renewed.certified_config(&authority));
    assert_eq!(client(&server, renewed.certified_config(&renewed)).say("GET k"), bulk("v"));
}
