//! Parsing of the request line and headers.

use std::cmp::Ordering;
use std::net::SocketAddr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// More than browsers send.
const HEADER_COUNT_MAX: usize = 64;

pub(super) struct Request<'a> {
    pub(super) method: &'a str,
    pub(super) path: &'a str,
    /// The part after the `?`.
    pub(super) query: &'a str,
    pub(super) host: Host<'a>,
    pub(super) credentials: Credentials,
    /// The client's accepted media types; the contents of all such headers, concatenated.
    pub(super) accepts: String,
    /// The remote address.
    pub(super) addr: SocketAddr,
}

/// The requested host.
#[derive(PartialEq, Eq, Debug)]
pub(super) enum Host<'a> {
    Named(&'a str),
    /// An old client, not a browser, sends none.
    Unneeded,
    /// It must be sent exactly once, and is not.
    Wrong,
}

/// The credentials of a request.
#[derive(PartialEq, Eq, Debug)]
pub(super) enum Credentials {
    /// None.
    None,
    /// A name and a password.
    Basic(Vec<u8>, Vec<u8>),
    /// Anything other than Basic authentication.
    Unknown,
}

pub(super) enum Parsed<'a> {
    Whole(Request<'a>),
    /// Incomplete.
    Partial,
    /// Not HTTP.
    Wrong,
}

impl Request<'_> {
    pub(super) fn parse(bytes: &[u8], addr: SocketAddr) -> Parsed<'_> {
        let mut headers = [httparse::EMPTY_HEADER; HEADER_COUNT_MAX];
        let mut head = httparse::Request::new(&mut headers);
        match head.parse(bytes) {
            Ok(httparse::Status::Complete(_)) => {}
            Ok(httparse::Status::Partial) => return Parsed::Partial,
            Err(_) => return Parsed::Wrong,
        }
        let (Some(method), Some(target)) = (head.method, head.path) else { return Parsed::Wrong };
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let header = head.headers.iter().find(|header| header.name.eq_ignore_ascii_case("authorization"));
        let credentials = header.map_or(Credentials::None, |header| Credentials::of(header.value));
        let host = Host::of(head.headers, head.version == Some(0));
        let accepts = head.headers.iter().filter(|header| header.name.eq_ignore_ascii_case("accept"));
        let accepts: Vec<_> = accepts.map(|header| String::from_utf8_lossy(header.value)).collect();
        Parsed::Whole(Request { method, path, query, host, credentials, accepts: accepts.join(","), addr })
    }

    /// Returns whether the client prefers plain text to OpenMetrics. Plain text is the default for clients without a
    /// preference.
    pub(super) fn wants_plain_text(&self) -> bool {
        self.weight("text", "plain") > self.weight("application", "openmetrics-text")
    }

    /// Returns the client's preference for a media type, from 0 to 1, by the most specific match.
    fn weight(&self, kind: &str, form: &str) -> f64 {
        let closeness = |name: &str| match name.trim().split_once('/') {
            Some((one, other)) if one.eq_ignore_ascii_case(kind) && other.eq_ignore_ascii_case(form) => 3,
            Some((one, "*")) if one.eq_ignore_ascii_case(kind) => 2,
            Some(("*", "*")) => 1,
            _ => 0,
        };
        let named = self.accepts.split(',').map(|range| {
            let mut words = range.split(';');
            let name = words.next().unwrap_or_default();
            let weight = words.filter_map(|word| word.trim().strip_prefix("q=")?.parse::<f64>().ok()).next();
            (closeness(name), weight.unwrap_or(1.0))
        });
        let (_, weight) = named.fold((0, 0.0), |best, one| match one.0.cmp(&best.0) {
            Ordering::Less => best,
            Ordering::Equal if one.0 == 0 || one.1 <= best.1 => best,
            _ => one,
        });
        weight
    }

    /// Returns the number with this name in the query.
    pub(super) fn number(&self, name: &str) -> Option<u64> {
        let mut pairs = self.query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.find(|(known, _)| *known == name).and_then(|(_, number)| number.parse().ok())
    }
}

impl<'a> Host<'a> {
    fn of(headers: &[httparse::Header<'a>], is_old: bool) -> Host<'a> {
        let mut named = headers.iter().filter(|header| header.name.eq_ignore_ascii_case("host"));
        match (named.next(), named.next()) {
            (None, _) if is_old => Host::Unneeded,
            (Some(header), None) => str::from_utf8(header.value).map_or(Host::Wrong, Host::Named),
            _ => Host::Wrong,
        }
    }
}

impl Credentials {
    /// Returns the given name, or an empty one.
    pub(super) fn name(&self) -> &[u8] {
        match self {
            Credentials::Basic(name, _) => name,
            Credentials::None | Credentials::Unknown => b"",
        }
    }

    fn of(header: &[u8]) -> Credentials {
        Credentials::basic(header).unwrap_or(Credentials::Unknown)
    }

    fn basic(header: &[u8]) -> Option<Credentials> {
        let (scheme, token) = str::from_utf8(header).ok()?.split_once(' ')?;
        let pair = STANDARD.decode(token.trim()).ok()?;
        let colon = pair.iter().position(|byte| *byte == b':')?;
        let (name, password) = (pair[..colon].to_vec(), pair[colon + 1..].to_vec());
        scheme.eq_ignore_ascii_case("basic").then_some(Credentials::Basic(name, password))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(bytes: &[u8]) -> Parsed<'_> {
        Request::parse(bytes, SocketAddr::from(([127, 0, 0, 1], 1)))
    }

    #[test]
    fn request_is_whole_partial_or_wrong() {
        let Parsed::Whole(request) = parse(b"GET /live.json?after=7 HTTP/1.1\r\nHost: x\r\n\r\n") else {
            panic!("it is whole");
        };
        assert_eq!((request.method, request.path, request.number("after")), ("GET", "/live.json", Some(7)));
        assert_eq!((request.number("before"), request.credentials), (None, Credentials::None));
        assert!(matches!(parse(b"GET / HTTP/1.1\r\nHost: x\r\n"), Parsed::Partial));
        assert!(matches!(parse(b"*1\r\n$4\r\nPING\r\n"), Parsed::Wrong));
    }

    #[test]
    fn host_is_named_once() {
        let host_of = |head: &[u8], wanted: Host<'_>| {
            let Parsed::Whole(request) = parse(head) else { panic!("it is whole") };
            assert_eq!(request.host, wanted);
        };
        host_of(b"GET / HTTP/1.1\r\nhost: a:1\r\n\r\n", Host::Named("a:1"));
        host_of(b"GET / HTTP/1.1\r\n\r\n", Host::Wrong);
        host_of(b"GET / HTTP/1.0\r\n\r\n", Host::Unneeded);
        host_of(b"GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n", Host::Wrong);
    }

    #[test]
    fn preferred_media_type_is_used() {
        let wants = |accept: &str| {
            let head = format!("GET /metrics HTTP/1.1\r\nHost: x\r\n{accept}\r\n");
            let Parsed::Whole(request) = parse(head.as_bytes()) else { panic!("it is whole") };
            request.wants_plain_text()
        };
        for plain in [
            "Accept: text/plain;version=0.0.4\r\n",
            "accept: text/*\r\n",
            "Accept: application/openmetrics-text;q=0.2, text/plain;q=0.3\r\n",
            "Accept: application/openmetrics-text;q=0\r\nAccept: */*;q=0.1\r\n",
        ] {
            assert!(wants(plain), "{plain}");
        }
        let prometheus =
            "Accept: application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1\r\n";
        for open in ["", "Accept: */*\r\n", "Accept: text/html\r\n", "Accept: text/plain;q=0\r\n", prometheus] {
            assert!(!wants(open), "{open}");
        }
    }

    #[test]
    fn credentials_are_understood_or_not() {
        // "ann:a:b"
        assert_eq!(Credentials::of(b"basic YW5uOmE6Yg=="), Credentials::Basic(b"ann".into(), b"a:b".into()));
        for wrong in [&b"Basic"[..], b"Basic ???", b"Bearer YW5uOmE6Yg==", b"Basic YW5u", b"\xff \xff"] {
            assert_eq!(Credentials::of(wrong), Credentials::Unknown);
        }
    }
}
