//! The HTTP port: correct contents, which only permitted users see.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::common::{TestServer, bulk, int, ok};
use hikv::pool::Sharing;
use serde_json::Value as Json;
use server::{Config, HttpPort};

/// The password of the servers here; in Base64 with the user's name: `default:sesame`.
const PASSWORD: &[u8] = b"sesame";
const AUTHORIZATION: &str = "Authorization: Basic ZGVmYXVsdDpzZXNhbWU=\r\n";

fn watched() -> TestServer {
    TestServer::with(Config { threads: 2, http: Some("127.0.0.1:0".into()), ..Config::default() })
}

pub(crate) struct Answer {
    status: u16,
    head: String,
    pub(crate) body: String,
}

impl Answer {
    fn json(&self) -> Json {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    /// Returns the sample with this name and labels.
    fn metric(&self, name: &str) -> f64 {
        let line = self.body.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("no {name} in {}", self.body))
    }
}

fn send(addr: SocketAddr, request: &[u8]) -> Answer {
    let mut socket = TcpStream::connect(addr).expect("the port listens");
    socket.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout is set");
    socket.write_all(request).expect("the port takes a request");
    let mut answer = String::new();
    socket.read_to_string(&mut answer).expect("an answer comes whole");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    Answer { status, head: head.into(), body: body.into() }
}

pub(crate) fn get(server: &TestServer, path: &str) -> Answer {
    get_with(server, path, "")
}

fn get_with(server: &TestServer, path: &str, headers: &str) -> Answer {
    let addr = server.http.as_ref().expect("it is watched").local_addr();
    send(addr, format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n").as_bytes())
}

#[test]
fn metrics_count_requests() {
    let server = watched();
    let mut client = server.client();
    for number in 0..10 {
        assert_eq!(client.say(&format!("SET key:{number} value")), ok());
    }
    client.send(&b"GET key:1\r\n".repeat(20));
    (0..20).for_each(|_| assert_eq!(client.reply(), bulk("value")));
    client.say("GET absent");
    client.say("INCR key:1");
    client.say("NONSENSE");
    client.say("DEL key:9");
    let metrics = get(&server, "/metrics");
    assert_eq!(metrics.status, 200);
    for (name, value) in [
        ("hikv_requests_total{kind=\"set\"}", 10.0),
        ("hikv_requests_total{kind=\"get\"}", 21.0),
        ("hikv_requests_total{kind=\"update\"}", 1.0),
        ("hikv_requests_total{kind=\"delete\"}", 1.0),
        ("hikv_requests_total{kind=\"other\"}", 1.0),
        ("hikv_errors_total{kind=\"update\"}", 1.0),
        ("hikv_errors_total{kind=\"other\"}", 1.0),
        ("hikv_errors_total{kind=\"get\"}", 0.0),
        ("hikv_latency_seconds_count{kind=\"get\"}", 21.0),
        ("hikv_hits_total", 20.0),
        ("hikv_misses_total", 1.0),
        ("hikv_clients", 1.0),
        ("hikv_connections_total", 1.0),
        ("hikv_items", 9.0),
        ("hikv_healthy", 1.0),
        ("hikv_snapshots", 0.0),
    ] {
        assert_eq!(metrics.metric(name), value, "{name}");
    }
    let stats = server.store.stats();
    assert_eq!(metrics.metric("hikv_region_bytes"), stats.region_bytes as f64);
    assert_eq!(metrics.metric("hikv_segments"), stats.figure("segment_count").unwrap());
    assert!(metrics.metric("hikv_output_bytes_total") > 20.0 * 11.0);
    assert!(metrics.metric("hikv_input_bytes_total") > 20.0 * 11.0);
    assert!(metrics.metric("hikv_cpu_seconds_total{role=\"serving\"}") > 0.0);
    assert!(metrics.body.contains(stats.durability_why), "{}", metrics.body);
    assert!(metrics.body.ends_with("# EOF\n"));
    // The last bucket of a histogram counts everything; without it no quantile can be computed.
    for kind in ["get", "set", "message"] {
        let count = metrics.metric(&format!("hikv_latency_seconds_count{{kind=\"{kind}\"}}"));
        let last = metrics.metric(&format!("hikv_latency_seconds_bucket{{le=\"+Inf\",kind=\"{kind}\"}}"));
        assert_eq!(last, count, "{kind}");
    }
}

#[test]
fn named_trees_are_counted() {
    let server = watched();
    let mut client = server.client();
    let tree = server.store.tree("two\nlines").unwrap();
    tree.multi_put([("1", "a"), ("2", "b")]).unwrap();
    let info = |keys| bulk(format!("# Trees\r\ntrees:1\r\ntree_two\\nlines:keys={keys}\r\n"));
    assert_eq!(client.say("INFO trees"), info("not counted"));
    let metrics = get(&server, "/metrics");
    assert_eq!(metrics.metric("hikv_trees"), 1.0);
    assert!(!metrics.body.contains("hikv_tree_items{"), "{}", metrics.body);
    assert_eq!(tree.len().unwrap(), 2);
    assert_eq!(client.say("INFO trees"), info("2"));
    assert_eq!(get(&server, "/metrics").metric("hikv_tree_items{tree=\"two\\nlines\"}"), 2.0);
}

#[test]
fn journaled_store_counts_log_writes() {
    let server = watched();
    let journal = server.store.stats().journal.expect("this directory needs a journal");
    assert_eq!(server.client().say("SET key value"), ok());
    let metrics = get(&server, "/metrics");
    assert!(metrics.metric("hikv_log_syncs_total") > journal.log_sync_count as f64);
    assert!(metrics.metric("hikv_log_written_bytes_total") > 0.0);
}

#[test]
fn snapshots_show_retained_items() {
    let server = watched();
    let mut client = server.client();
    client.say("SET key old");
    let snapshot = server.store.snapshot().expect("a snapshot");
    client.say("SET key new");
    let metrics = get(&server, "/metrics");
    assert_eq!((metrics.metric("hikv_snapshots"), metrics.metric("hikv_snapshot_kept_items")), (1.0, 1.0));
    assert!(metrics.metric("hikv_snapshot_kept_bytes") > 0.0);
    let info = format!("{:?}", client.say("INFO snapshots"));
    assert!(info.contains("snapshot_count:1"), "{info}");
    drop(snapshot);
}

#[test]
fn live_figures_are_the_servers() {
    let server = watched();
    let mut client = server.client();
    client.say("CONFIG SET slowlog-log-slower-than 0");
    client.say("SET secret-key secret-value");
    client.say("GET secret-key");
    let live = get(&server, "/live.json");
    assert!(!live.body.contains("secret"), "{}", live.body);
    let live = live.json();
    let kinds = live["kinds"].as_array().expect("kinds");
    let of_kind = |name: &str| kinds.iter().position(|kind| kind == name).expect("a known kind");
    assert_eq!((&live["requests"][of_kind("set")], &live["requests"][of_kind("get")]), (&1.into(), &1.into()));
    assert_eq!(live["hits"], 1);
    assert_eq!((&live["slow"][0]["name"], &live["slow"][1]["name"]), (&"GET".into(), &"SET".into()));
    let samples = |live: &Json| live["samples"].as_array().expect("samples").len();
    assert_eq!(samples(&get(&server, "/live.json?after=1000000").json()), 0);
    let metrics = get(&server, "/metrics");
    assert!(!metrics.body.contains("secret"), "{}", metrics.body);
    // The next samples come one per second.
    while samples(&get(&server, "/live.json").json()) < 2 {
        std::thread::yield_now();
    }
    let live = get(&server, "/live.json").json();
    let sample = &live["samples"][1];
    assert_eq!((&sample["number"], &sample["items"], &sample["clients"]), (&2.into(), &1.into(), &1.into()));
}

#[test]
fn the_split_and_its_samples_are_shown() {
    let server = TestServer::with(Config {
        threads: 2,
        http: Some("127.0.0.1:0".into()),
        split: Sharing::default(),
        ordered: true,
        ..Config::default()
    });
    let mut client = server.client();
    for _ in 0..130 {
        client.send(&b"GET key\r\n".repeat(64));
        (0..64).for_each(|_| drop(client.reply()));
    }
    let metrics = get(&server, "/metrics");
    assert!(metrics.body.contains("hikv_thread_split_info{split=\"adaptive\"} 1"), "{}", metrics.body);
    for (name, value) in [
        ("hikv_loops{role=\"serving\"}", 2.0),
        ("hikv_loops{role=\"backend\"}", 0.0),
        ("hikv_backend_loops_awake", 0.0),
        ("hikv_workers", server.store.stats().worker_count as f64),
        ("hikv_sampled_windows_total", 1.0),
        ("hikv_sampled_operations{kind=\"scan\"}", 0.0),
        ("hikv_sampled_operations{kind=\"write\"}", 0.0),
        ("hikv_sampled_time_seconds{kind=\"write\"}", 0.0),
        ("hikv_sampled_changes_left", 0.0),
        ("hikv_sampled_queue_items", 0.0),
    ] {
        assert_eq!(metrics.metric(name), value, "{name}");
    }
    assert!(metrics.metric("hikv_sampled_operations{kind=\"get\"}") >= 8_192.0);
    assert!(metrics.metric("hikv_sampled_time_seconds{kind=\"get\"}") > 0.0);
    let live = || get(&server, "/live.json").json();
    assert_eq!((&live()["split"], &live()["sampled"][3]), (&"adaptive".into(), &"apply".into()));
    let is_sampled = |live: Json| live["samples"].as_array().and_then(|samples| samples.last().cloned());
    let sample = loop {
        let sample = is_sampled(live()).filter(|sample| sample["sampled_count"][0].as_u64() >= Some(8_192));
        if let Some(sample) = sample {
            break sample;
        }
        std::thread::yield_now();
    };
    assert_eq!((&sample["serving_loops"], &sample["backend_loops"]), (&2.into(), &0.into()));
    assert!(sample["sampled_us"][0].as_f64() > Some(0.0) && sample["sampled_us"][2].is_null(), "{sample}");
    assert_eq!(sample["queued_count"], 0);
}

#[test]
fn health_lists_available_operations() {
    let config = Config { http: Some("127.0.0.1:0".into()), ..Config::default() };
    let port = HttpPort::open(&config).expect("a free port binds").expect("the configuration has it");
    for path in ["/health", "/health/serving", "/metrics", "/live.json", "/"] {
        let answer = send(port.local_addr(), format!("GET {path} HTTP/1.0\r\n\r\n").as_bytes());
        assert_eq!((answer.status, &answer.json()["status"]), (503, &"opening".into()), "{path}");
    }
    let server = watched();
    while get(&server, "/health").status != 200 {
        std::thread::yield_now();
    }
    let health = get(&server, "/health").json();
    assert_eq!(health["status"], "serving");
    assert_eq!(health["ready"], serde_json::json!(["reads", "writes", "counts"]));
    // Range operations are counted from the first range query on.
    assert_eq!(server.client().say("COUNTRANGE - +"), int(0));
    let health = get(&server, "/health").json();
    assert_eq!(health["ready"], serde_json::json!(["reads", "writes", "ranges", "counts"]));
    assert_eq!(get(&server, "/health/serving").status, 200);
    let mut server = server;
    server.stop.stop();
    server.join().expect("it ends well");
    let answer = get(&server, "/health");
    assert_eq!((answer.status, &answer.json()["status"]), (503, &"stopping".into()));
}

#[test]
fn password_protects_all_but_health() {
    let server = TestServer::with(Config {
        http: Some("127.0.0.1:0".into()),
        password: Some(PASSWORD.into()),
        ..Config::default()
    });
    let mut client = server.client();
    client.say("AUTH sesame");
    client.say("ACL SETUSER guest on >sesame ~* +get");
    // "default:wrong", "nobody:sesame", "guest:sesame"
    let wrong = "Authorization: Basic ZGVmYXVsdDp3cm9uZw==\r\n";
    let nobody = "Authorization: Basic bm9ib2R5OnNlc2FtZQ==\r\n";
    let guest = "Authorization: Basic Z3Vlc3Q6c2VzYW1l\r\n";
    for path in ["/", "/metrics", "/live.json"] {
        for headers in ["", wrong, nobody, "Authorization: Bearer x\r\n"] {
            let answer = get_with(&server, path, headers);
            assert_eq!(answer.status, 401, "{path} {headers}");
            assert!(answer.head.contains("WWW-Authenticate: Basic"));
        }
        assert_eq!(get_with(&server, path, guest).status, 403);
        assert_eq!(get_with(&server, path, AUTHORIZATION).status, 200);
    }
    assert_ne!(get(&server, "/health").status, 401);
}

#[test]
fn remote_address_needs_password() {
    let open = |config: Config| HttpPort::open(&Config { http: Some("0.0.0.0:0".into()), ..config });
    let refused = open(Config::default()).map(|_| ()).expect_err("it is protected");
    assert!(refused.to_string().contains("0.0.0.0"), "{refused}");
    assert!(open(Config { protected: false, ..Config::default() }).is_ok());
    assert!(open(Config { password: Some(PASSWORD.into()), ..Config::default() }).is_ok());
    assert!(HttpPort::open(&Config::default()).expect("nothing to open").is_none());
}

#[test]
fn invalid_and_long_requests_are_refused() {
    let server = watched();
    let addr = server.http.as_ref().expect("it is watched").local_addr();
    assert_eq!(send(addr, b"POST /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").status, 405);
    assert_eq!(send(addr, b"*1\r\n$4\r\nPING\r\n").status, 400);
    assert_eq!(get(&server, "/../etc/passwd").status, 404);
    let long = [b"GET / HTTP/1.1\r\nX: ".to_vec(), vec![b'x'; 16 << 10]].concat();
    assert_eq!(send(addr, &long).status, 431);
    let head = send(addr, b"HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_eq!((head.status, head.body.as_str()), (200, ""));
}

#[test]
fn silent_connections_block_no_client() {
    let server = watched();
    let addr = server.http.as_ref().expect("it is watched").local_addr();
    let silent: Vec<TcpStream> = (0..200).map(|_| TcpStream::connect(addr).expect("the port listens")).collect();
    assert_eq!(get(&server, "/metrics").status, 200);
    drop(silent);
}

#[test]
fn the_page_allows_nothing_but_itself() {
    let page = get(&watched(), "/");
    assert_eq!(page.status, 200);
    assert!(page.head.contains("Content-Security-Policy: default-src 'none'; style-src 'sha256-"), "{}", page.head);
    // A namespace, which is never loaded, and an empty icon.
    let body = page.body.replace("http://www.w3.org/2000/svg", "").replace("href=\"data:,\"", "");
    for foreign in ["http://", "https://", "src=", "href=", "url(", "@import", "eval("] {
        assert!(!body.contains(foreign), "{foreign}");
    }
}

#[test]
fn page_answers_only_its_own_names() {
    let config =
        Config { http: Some("127.0.0.1:0".into()), http_hosts: vec!["watch.example".into()], ..Config::default() };
    let server = TestServer::with(config);
    let addr = server.http.as_ref().expect("it is watched").local_addr();
    let ask = |path: &str, host: &str| send(addr, format!("GET {path} HTTP/1.1\r\n{host}\r\n").as_bytes());
    for host in ["localhost", "127.0.0.1", &addr.to_string(), "[::1]:80", "watch.example:9121"] {
        assert_eq!(ask("/metrics", &format!("Host: {host}\r\n")).status, 200, "{host}");
    }
    for path in ["/", "/metrics", "/health", "/live.json", "/none"] {
        let answer = ask(path, &format!("Host: evil.example:{}\r\n", addr.port()));
        assert_eq!(answer.status, 421, "{path}");
        assert!(answer.body.contains("'evil.example:") && answer.body.contains("--http-host"), "{}", answer.body);
    }
    for headers in ["", "Host: localhost\r\nHost: evil.example\r\n"] {
        let answer = ask("/metrics", headers);
        assert_eq!((answer.status, answer.body.contains("one Host header")), (400, true), "{headers}");
    }
}

#[test]
fn reset_of_statistics_leaves_metrics() {
    let server = watched();
    let mut client = server.client();
    for request in ["SET k v", "GET k", "GET absent", "NONSENSE"] {
        client.say(request);
    }
    let names = [
        "hikv_hits_total",
        "hikv_misses_total",
        "hikv_connections_total",
        "hikv_requests_total{kind=\"get\"}",
        "hikv_errors_total{kind=\"other\"}",
    ];
    let metrics = |answer: Answer| names.map(|name| answer.metric(name));
    let before = metrics(get(&server, "/metrics"));
    assert!(before.iter().all(|count| *count > 0.0), "{before:?}");
    assert_eq!(client.say("CONFIG RESETSTAT"), ok());
    let after = metrics(get(&server, "/metrics"));
    assert!(before.iter().zip(after).all(|(before, after)| after >= *before), "{before:?} {after:?}");
}
