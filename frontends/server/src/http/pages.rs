//! The responses by path.

use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

use super::access::{Access, access};
use super::request::Request;
use super::response::Response;
use crate::shared::Shared;
use crate::telemetry::{self, Health, History, NamedTrees, Reading, Status, plain_text};

static PAGE: &str = include_str!("page.html");

const JSON: &str = "application/json";

/// Permits only the page's own style and script, by their hashes, and only requests to this port.
static POLICY: LazyLock<String> = LazyLock::new(|| {
    format!(
        "default-src 'none'; style-src '{}'; script-src '{}'; connect-src 'self'; img-src data:; base-uri 'none'; \
         form-action 'none'; frame-ancestors 'none'",
        hash_of("style"),
        hash_of("script")
    )
});

/// Returns the hash of the text between the page's tags of this name, as in a content security policy.
fn hash_of(tag: &str) -> String {
    let (open, close) = (format!("<{tag}>"), format!("</{tag}>"));
    let start = PAGE.find(&open).expect("the page has this tag") + open.len();
    let end = PAGE.find(&close).expect("the page has this tag");
    format!("sha256-{}", STANDARD.encode(Sha256::digest(&PAGE.as_bytes()[start..end])))
}

#[derive(Default)]
pub(super) struct Pages {
    history: History,
    /// The status at the last sample.
    status: Option<Status>,
}

impl Pages {
    pub(super) fn sample(&mut self, shared: &Shared) {
        if let Ok(reading) = Reading::of(shared) {
            self.note_health(&reading.health);
            self.history.note(reading);
        }
    }

    /// Logs changes.
    fn note_health(&mut self, health: &Health) {
        let reason = health.reason.as_str();
        match (self.status.replace(health.status), health.status) {
            (last, now) if last == Some(now) => {}
            (_, now @ (Status::Poisoned | Status::Removed | Status::Full)) => {
                tracing::error!(reason, "health: {}", now.name());
            }
            (_, now) => tracing::info!(status = now.name(), reason, "health"),
        }
    }

    /// Answers a request. `shared` is the server, if it exists; `is_opening` is true if it will.
    pub(super) fn answer(&self, request: &Request<'_>, is_opening: bool, shared: Option<&Shared>) -> Response {
        match request.method {
            "GET" => self.get(request, is_opening, shared),
            "HEAD" => self.get(request, is_opening, shared).head_only(),
            _ => Response::of_status(405).with_header("Allow", "GET, HEAD"),
        }
    }

    fn get(&self, request: &Request<'_>, is_opening: bool, shared: Option<&Shared>) -> Response {
        let reading = shared.and_then(|shared| Some((shared, Reading::of(shared).ok()?)));
        let absent = || if is_opening { Health::opening() } else { Health::stopping() };
        let health = reading.as_ref().map_or_else(absent, |(_, reading)| reading.health.clone());
        match request.path {
            "/health" => health_response(&health, health.is_serving()),
            "/health/serving" => health_response(&health, health.accepts_requests()),
            "/" | "/live.json" | "/metrics" => match reading {
                Some((shared, reading)) => self.show(request, shared, &reading),
                None => health_response(&health, false),
            },
            _ => Response::of_status(404),
        }
    }

    fn show(&self, request: &Request<'_>, shared: &Shared, reading: &Reading) -> Response {
        match access(&request.credentials, request.addr, shared) {
            Access::Granted => {}
            Access::Denied => return Response::of_status(403),
            Access::Unknown => {
                let scheme = "Basic realm=\"hikv\", charset=\"UTF-8\"";
                return Response::of_status(401).with_header("WWW-Authenticate", scheme);
            }
        }
        match request.path {
            "/metrics" => {
                let page = telemetry::exposition(reading, NamedTrees::of(shared).ok());
                match request.wants_plain_text() {
                    true => Response::new(200, plain_text::CONTENT_TYPE, plain_text::of(&page)),
                    false => Response::new(200, telemetry::CONTENT_TYPE, page),
                }
                .with_header("Vary", "Accept")
            }
            "/live.json" => {
                let after = request.number("after").unwrap_or(0);
                Response::new(200, JSON, telemetry::live(shared, reading, &self.history, after))
            }
            _ => Response::new(200, "text/html; charset=utf-8", PAGE).with_header("Content-Security-Policy", &POLICY),
        }
    }
}

fn health_response(health: &Health, is_well: bool) -> Response {
    let body = serde_json::to_vec(health).expect("texts have a form in JSON");
    Response::new(if is_well { 200 } else { 503 }, JSON, [&body[..], b"\n"].concat())
}
