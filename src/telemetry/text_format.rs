//! [`TextFormat`]: the human-readable log format: time, level, message, and `name=value` for each field.
//!
//! Every request writes a line, so this does the minimum; the formatter of `tracing_subscriber` styles and escapes each
//! field separately.

use std::fmt::{self, Debug, Write};
use std::time::SystemTime;

use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::FmtContext;
use tracing_subscriber::fmt::format::{FormatEvent, FormatFields, Writer};
use tracing_subscriber::registry::LookupSpan;
use zarrd::units::time::rfc3339;

/// The capacity for a line: enough for most requests.
const LINE_BYTES: usize = 256;

/// The human-readable log format.
#[derive(Clone, Copy, Debug)]
pub(super) struct TextFormat {
    /// Whether levels have colours.
    pub(super) is_coloured: bool,
    /// The clock.
    pub(super) now: fn() -> SystemTime,
}

impl<S, N> FormatEvent<S, N> for TextFormat
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        _: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        // In memory of its own: `Writer` calls its output through a table of functions, for each part of a line.
        let mut line = String::with_capacity(LINE_BYTES);
        write!(line, "{}", rfc3339((self.now)()))?;
        let (level, colour) = match *event.metadata().level() {
            Level::ERROR => ("ERROR", 31),
            Level::WARN => (" WARN", 33),
            Level::INFO => (" INFO", 32),
            Level::DEBUG => ("DEBUG", 34),
            Level::TRACE => ("TRACE", 35),
        };
        if self.is_coloured {
            write!(line, " \x1b[{colour}m{level}\x1b[0m")?;
        } else {
            line.push(' ');
            line.push_str(level);
        }
        let mut fields = FieldWriter { line, result: Ok(()) };
        event.record(&mut fields);
        let FieldWriter { mut line, result } = fields;
        result?;
        line.push('\n');
        writer.write_str(&line)
    }
}

/// Writes the fields of an event; the field `message` is written without its name.
struct FieldWriter {
    line: String,
    result: fmt::Result,
}

impl FieldWriter {
    fn add(&mut self, field: &Field, value: impl FnOnce(&mut String) -> fmt::Result) {
        let Self { line, result } = self;
        line.push(' ');
        if field.name() != "message" {
            line.push_str(field.name());
            line.push('=');
        }
        *result = result.and(value(line));
    }
}

impl Visit for FieldWriter {
    fn record_str(&mut self, field: &Field, value: &str) {
        let is_plain = |byte: u8| byte.is_ascii_graphic() && byte != b'"' && byte != b'=';
        self.add(field, |line| {
            if !value.is_empty() && value.bytes().all(is_plain) {
                line.push_str(value);
                return Ok(());
            }
            write!(line, "{value:?}")
        });
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add(field, |line| write!(line, "{value}"));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add(field, |line| line.write_str(if value { "true" } else { "false" }));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.add(field, |line| write!(EscapingWriter(line), "{value:?}"));
    }
}

/// Escapes control characters, so that an event remains one line.
struct EscapingWriter<'a>(&'a mut String);

impl Write for EscapingWriter<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        // Most texts are; searching for characters takes longer than copying them.
        if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
            self.0.push_str(text);
            return Ok(());
        }
        for letter in text.chars() {
            if letter.is_control() {
                self.0.extend(letter.escape_default());
            } else {
                self.0.push(letter);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use tracing_subscriber::fmt::MakeWriter;
    use tracing_subscriber::layer::SubscriberExt;
    use tracing_subscriber::{fmt as layers, registry};

    use super::*;

    #[derive(Clone, Default)]
    struct CapturedOutput(Arc<Mutex<Vec<u8>>>);

    impl io::Write for CapturedOutput {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl MakeWriter<'_> for CapturedOutput {
        type Writer = Self;

        fn make_writer(&self) -> Self {
            self.clone()
        }
    }

    /// The line of an event, without the time.
    fn line(is_coloured: bool, emit: impl FnOnce()) -> String {
        let written = CapturedOutput::default();
        let format = TextFormat { is_coloured, now: SystemTime::now };
        let layer = layers::layer().event_format(format).with_writer(written.clone());
        tracing::subscriber::with_default(registry().with(layer), emit);
        let line = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
        line.split_once("Z ").unwrap().1.to_owned()
    }

    #[test]
    fn an_event_is_one_line_of_message_and_named_values() {
        let text = line(false, || {
            tracing::info!(status = 200, complete = true, path = "/a/b", empty = "", "request");
        });
        assert_eq!(text, " INFO request status=200 complete=true path=/a/b empty=\"\"\n");
        assert_eq!(line(true, || tracing::warn!("slow")), "\x1b[33m WARN\x1b[0m slow\n");
    }

    #[test]
    fn a_value_cannot_forge_a_line_or_a_field() {
        let hostile = "a\nb c=\"d\" \u{1b}[31m";
        let text = line(false, || tracing::error!(error = hostile, shown = %hostile, "no {hostile}"));
        assert_eq!(
            text,
            "ERROR no a\\nb c=\"d\" \\u{1b}[31m error=\"a\\nb c=\\\"d\\\" \\u{1b}[31m\" shown=a\\nb c=\"d\" \\u{1b}[31m\n"
        );
    }
}
