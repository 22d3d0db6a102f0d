//! A response: a status, a few headers, a body.

pub(super) struct Response {
    status: u16,
    content_type: &'static str,
    /// Complete lines, in addition to those of every response.
    headers: String,
    body: Vec<u8>,
    /// For `HEAD`: the body's length is sent, but not the body.
    is_head_only: bool,
}

impl Response {
    pub(super) fn new(status: u16, content_type: &'static str, body: impl Into<Vec<u8>>) -> Response {
        Response { status, content_type, headers: String::new(), body: body.into(), is_head_only: false }
    }

    /// Creates a response with only a status.
    pub(super) fn of_status(status: u16) -> Response {
        Response::new(status, "text/plain; charset=utf-8", format!("{} {}\n", status, phrase(status)))
    }

    /// Creates a response with an explanation.
    pub(super) fn explained(status: u16, why: &str) -> Response {
        Response::new(status, "text/plain; charset=utf-8", format!("{} {}: {why}\n", status, phrase(status)))
    }

    pub(super) fn with_header(mut self, name: &str, value: &str) -> Response {
        self.headers.push_str(&format!("{name}: {value}\r\n"));
        self
    }

    pub(super) fn head_only(mut self) -> Response {
        self.is_head_only = true;
        self
    }

    pub(super) fn bytes(self) -> Vec<u8> {
        let head = format!(
            "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\nCache-Control: no-store\r\n\
             X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n{}\r\n",
            self.status,
            phrase(self.status),
            self.content_type,
            self.body.len(),
            self.headers
        );
        let body = if self.is_head_only { Vec::new() } else { self.body };
        [head.into_bytes(), body].concat()
    }
}

fn phrase(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        421 => "Misdirected Request",
        431 => "Request Header Fields Too Large",
        503 => "Service Unavailable",
        _ => "Unknown",
    }
}
