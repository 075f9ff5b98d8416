//! The access log as text: [`TextLayer::write_entry`] writes the lines that [`TextLayer`] would write for their events.
//!
//! Every request has one, so this does the minimum, and only rare values go through `fmt`.

use std::fmt::{self, Write};
use std::io::Write as _;
use std::net::IpAddr;

use tracing::Level;
use tracing_subscriber::fmt::MakeWriter;
use zarrd::web::AccessLogEntry;

use super::text_layer::{LINE_BYTES, TextLayer, write_text};

impl<W: for<'w> MakeWriter<'w>> TextLayer<W> {
    /// Writes the line of a request.
    pub(super) fn write_entry(&self, entry: &AccessLogEntry<'_>) {
        let mut line = String::with_capacity(LINE_BYTES);
        // A line that cannot be formatted is left out, as one that cannot be written.
        if self.format_entry(entry, &mut line).is_ok() {
            let _ = self.writer.make_writer().write_all(line.as_bytes());
        }
    }

    fn format_entry(&self, entry: &AccessLogEntry<'_>, line: &mut String) -> fmt::Result {
        self.write_time_and_level(Level::INFO, line)?;
        line.push_str(" request request_id=");
        write_text(line, entry.request_id)?;
        line.push_str(" from=");
        write_address(line, entry.from)?;
        line.push_str(" method=");
        write_text(line, entry.method)?;
        line.push_str(" route=");
        write_text(line, entry.route)?;
        line.push_str(" path=");
        write_text(line, entry.path)?;
        line.push_str(" status=");
        line.push_str(itoa::Buffer::new().format(entry.status));
        line.push_str(" bytes=");
        line.push_str(itoa::Buffer::new().format(entry.bytes));
        line.push_str(if entry.complete { " complete=true" } else { " complete=false" });
        line.push_str(" duration_us=");
        line.push_str(itoa::Buffer::new().format(entry.duration_us()));
        line.push('\n');
        Ok(())
    }
}

fn write_address(line: &mut String, address: IpAddr) -> fmt::Result {
    let IpAddr::V4(address) = address else { return write!(line, "{address}") };
    let [first, others @ ..] = address.octets();
    line.push_str(itoa::Buffer::new().format(first));
    for octet in others {
        line.push('.');
        line.push_str(itoa::Buffer::new().format(octet));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime, UNIX_EPOCH};

    use tracing_subscriber::layer::SubscriberExt;
    use tracing_subscriber::registry;

    use super::*;
    use crate::telemetry::captured_output::CapturedOutput;

    fn now() -> SystemTime {
        UNIX_EPOCH + Duration::from_micros(1_764_000_000_123_456)
    }

    #[test]
    fn lines_are_those_of_the_event() {
        let usual = AccessLogEntry {
            request_id: "0123456789abcdef",
            from: [127, 0, 0, 1].into(),
            method: "GET",
            route: "/store/{mount}/{*key}",
            path: "/store/m/a/c/0",
            status: 200,
            bytes: 16_384,
            complete: true,
            duration: Duration::from_nanos(123_999),
        };
        let mut entries =
            vec![usual, AccessLogEntry { complete: false, status: 500, bytes: u64::MAX, ..usual }];
        for text in ["", "/a=b", "/a\\u{202e}b\\'c\\\"", "PROPFIND", "*", "-_.:", "/a%20b", "\u{e9}"] {
            entries.push(AccessLogEntry { request_id: text, method: text, path: text, ..usual });
        }
        for from in ["0.0.0.0", "255.255.255.255", "10.0.200.9", "::1", "2001:db8:1:2::", "::ffff:1.2.3.4"] {
            entries.push(AccessLogEntry { from: from.parse().unwrap(), duration: Duration::MAX, ..usual });
        }
        for is_coloured in [false, true] {
            for entry in &entries {
                let [direct, event] = [CapturedOutput::default(), CapturedOutput::default()];
                TextLayer::new(direct.clone(), is_coloured, now).write_entry(entry);
                let layer = TextLayer::new(event.clone(), is_coloured, now);
                tracing::subscriber::with_default(registry().with(layer), || entry.emit_event());
                assert_eq!(direct.text(), event.text());
                assert!(direct.text().ends_with('\n') && direct.text().contains(" request request_id="));
            }
        }
    }
}
