//! Conversion of OpenMetrics to the older text format of Prometheus (0.0.4), the only one that some scrapers support: a
//! family has the name of its samples, and there are no unit lines and no end marker.

/// The media type of the older format.
pub(crate) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Converts a page of OpenMetrics.
pub(crate) fn of(page: &str) -> String {
    let mut plain = String::with_capacity(page.len());
    // HELP precedes TYPE, but the family's name depends on the type.
    let mut help = None;
    for line in page.lines() {
        match line.split_once(' ').filter(|(hash, _)| *hash == "#").map_or(("", line), |(_, rest)| word(rest)) {
            ("HELP", rest) => help = Some(rest),
            ("TYPE", rest) => {
                let (name, kind) = word(rest);
                let (suffix, kind) = renamed(kind);
                let name = format!("{name}{suffix}");
                let said = help.take().map(|help| word(help).1);
                said.iter().for_each(|said| plain.push_str(&format!("# HELP {name} {said}\n")));
                plain.push_str(&format!("# TYPE {name} {kind}\n"));
            }
            ("UNIT" | "EOF", _) => {}
            _ => plain.extend([line, "\n"]),
        }
    }
    plain
}

fn word(text: &str) -> (&str, &str) {
    text.split_once(' ').unwrap_or((text, ""))
}

/// Returns the suffix of samples of this type, and the type in the older format.
fn renamed(kind: &str) -> (&str, &str) {
    match kind {
        "counter" => ("_total", "counter"),
        "info" => ("_info", "gauge"),
        kind => ("", kind),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_have_the_names_of_their_samples() {
        let page = "# HELP a_bytes Read # TYPE.\n# TYPE a_bytes counter\n# UNIT a_bytes bytes\na_bytes_total{k=\"v\"} 1\n\
                    # TYPE b info\nb_info{x=\"1\"} 1\n# HELP c C.\n# TYPE c gauge\nc 2.5\n# EOF\n";
        let plain = "# HELP a_bytes_total Read # TYPE.\n# TYPE a_bytes_total counter\na_bytes_total{k=\"v\"} 1\n\
                     # TYPE b_info gauge\nb_info{x=\"1\"} 1\n# HELP c C.\n# TYPE c gauge\nc 2.5\n";
        assert_eq!(of(page), plain);
    }
}
