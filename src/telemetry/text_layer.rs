//! [`TextLayer`]: the human-readable log: time, level, message, and `name=value` for each field.
//!
//! The layer of `tracing_subscriber` styles and escapes each field separately, and copies each line.

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
pub(super) const LINE_BYTES: usize = 256;

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
    pub(super) writer: W,
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
        self.write_time_and_level(*event.metadata().level(), &mut line)?;
        let mut fields = FieldWriter { line, result: Ok(()) };
        event.record(&mut fields);
        let FieldWriter { mut line, result } = fields;
        result?;
        line.push('\n');
        Ok(line)
    }

    /// Writes what a line begins with.
    pub(super) fn write_time_and_level(&self, level: Level, line: &mut String) -> fmt::Result {
        self.write_time(line)?;
        let (level, coloured) = match level {
            Level::ERROR => (" ERROR", " \x1b[31mERROR\x1b[0m"),
            Level::WARN => ("  WARN", " \x1b[33m WARN\x1b[0m"),
            Level::INFO => ("  INFO", " \x1b[32m INFO\x1b[0m"),
            Level::DEBUG => (" DEBUG", " \x1b[34mDEBUG\x1b[0m"),
            Level::TRACE => (" TRACE", " \x1b[35mTRACE\x1b[0m"),
        };
        line.push_str(if self.is_coloured { coloured } else { level });
        Ok(())
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
        self.add(field, |line| write_text(line, value));
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

/// Writes a text, with quotes where it could be mistaken for something else.
pub(super) fn write_text(line: &mut String, text: &str) -> fmt::Result {
    let is_plain = |byte: u8| PLAIN.get(usize::from(byte)).is_some_and(|plain| *plain);
    if !text.is_empty() && text.bytes().all(is_plain) {
        line.push_str(text);
        return Ok(());
    }
    write!(line, "{text:?}")
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
    use std::time::Duration;

    use tracing_subscriber::layer::SubscriberExt;
    use tracing_subscriber::registry;

    use super::*;
    use crate::telemetry::captured_output::CapturedOutput;

    /// The line of an event, without the time.
    fn line(is_coloured: bool, emit: impl FnOnce()) -> String {
        let written = CapturedOutput::default();
        let layer = TextLayer::new(written.clone(), is_coloured, SystemTime::now);
        tracing::subscriber::with_default(registry().with(layer), emit);
        written.text().split_once("Z ").unwrap().1.to_owned()
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
