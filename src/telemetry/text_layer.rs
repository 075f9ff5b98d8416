//! [`TextLayer`]: the human-readable log: time, level, message, and `name=value` for each field.
//!
//! Every request writes a line, so this does the minimum, and only rare values go through `fmt`; the layer of `tracing_subscriber`
//! styles and escapes each field separately, and copies each line.

use std::fmt::{self, Debug, Write};
use std::io::Write as _;
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::Context;
use zarrd::units::time::rfc3339_seconds;

/// The capacity for a line: enough for most requests.
const LINE_BYTES: usize = 256;

/// The bytes of a value that is written as it is, without quotes.
static PLAIN: [bool; 256] = {
    let mut plain = [false; 256];
    let mut byte = b'!';
    while byte <= b'~' {
        plain[byte as usize] = byte != b'"' && byte != b'=';
        byte += 1;
    }
    plain
};

/// A layer that writes each event as a line.
#[derive(Debug)]
pub(super) struct TextLayer<W> {
    writer: W,
    /// Whether levels have colours.
    is_coloured: bool,
    /// The clock.
    now: fn() -> SystemTime,
    /// The second of the last line, since 1970, and its text: most lines are of the same one.
    second: Mutex<(u64, String)>,
}

impl<W> TextLayer<W> {
    /// The layer with or without coloured levels, and its clock.
    pub(super) fn new(writer: W, is_coloured: bool, now: fn() -> SystemTime) -> Self {
        Self { writer, is_coloured, now, second: Mutex::default() }
    }

    /// The line of an event.
    fn line(&self, event: &Event<'_>) -> Result<String, fmt::Error> {
        let mut line = String::with_capacity(LINE_BYTES);
        self.write_time(&mut line)?;
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
        Ok(line)
    }

    /// Writes the time; one before 1970, where a clock without a battery may be, as the first of 1970.
    fn write_time(&self, line: &mut String) -> fmt::Result {
        let since = (self.now)().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut second = self.second.lock().unwrap_or_else(PoisonError::into_inner);
        if second.0 != since.as_secs() || second.1.is_empty() {
            let mut text = String::new();
            write!(text, "{}", rfc3339_seconds(UNIX_EPOCH + since))?;
            *second = (since.as_secs(), text);
        }
        line.push_str(second.1.strip_suffix('Z').unwrap_or_default());
        drop(second);
        // Six digits after a one.
        let micros = 1_000_000 + since.subsec_micros();
        line.push('.');
        line.push_str(itoa::Buffer::new().format(micros).get(1..).unwrap_or_default());
        line.push('Z');
        Ok(())
    }
}

impl<S: Subscriber, W: for<'w> MakeWriter<'w> + 'static> Layer<S> for TextLayer<W> {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        // A line that cannot be formatted is left out, as one that cannot be written.
        if let Ok(line) = self.line(event) {
            let _ = self.writer.make_writer().write_all(line.as_bytes());
        }
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
        let is_plain = |byte: u8| PLAIN.get(usize::from(byte)).is_some_and(|plain| *plain);
        self.add(field, |line| {
            if !value.is_empty() && value.bytes().all(is_plain) {
                line.push_str(value);
                return Ok(());
            }
            write!(line, "{value:?}")
        });
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add(field, |line| line.write_str(itoa::Buffer::new().format(value)));
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
    use std::sync::Arc;
    use std::time::Duration;

    use tracing_subscriber::layer::SubscriberExt;
    use tracing_subscriber::registry;

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
        let layer = TextLayer::new(written.clone(), is_coloured, SystemTime::now);
        tracing::subscriber::with_default(registry().with(layer), emit);
        let line = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
        line.split_once("Z ").unwrap().1.to_owned()
    }

    #[test]
    fn a_time_has_microseconds_also_in_the_second_that_another_line_began() {
        static NOW: Mutex<SystemTime> = Mutex::new(UNIX_EPOCH);
        let layer = TextLayer::new(CapturedOutput::default(), false, || *NOW.lock().unwrap());
        let leap_day = UNIX_EPOCH + Duration::from_hours(439_704);
        for (time, expected) in [
            (leap_day + Duration::from_micros(1), "2020-02-29T00:00:00.000001Z"),
            (leap_day + Duration::from_nanos(999_999_999), "2020-02-29T00:00:00.999999Z"),
            (leap_day + Duration::from_secs(1), "2020-02-29T00:00:01.000000Z"),
            (leap_day, "2020-02-29T00:00:00.000000Z"),
            (UNIX_EPOCH - Duration::from_secs(1), "1970-01-01T00:00:00.000000Z"),
        ] {
            *NOW.lock().unwrap() = time;
            let mut line = String::new();
            layer.write_time(&mut line).unwrap();
            assert_eq!(line, expected);
        }
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
