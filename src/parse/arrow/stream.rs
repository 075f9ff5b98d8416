//! [`Messages`]: the messages of a stream, each with its body (Arrow columnar format, "Encapsulated message format").

use arrow_ipc::{Message, MetadataVersion, root_as_message};

use super::malformed::malformed;
use crate::parse::error::ParseError;

/// Precedes the length of each message.
const CONTINUATION: [u8; 4] = [0xff; 4];

/// The messages that are left of a stream.
pub(super) struct Messages<'a> {
    rest: &'a [u8],
}

impl<'a> Messages<'a> {
    pub(super) fn new(stream: &'a [u8]) -> Self {
        Self { rest: stream }
    }

    /// The next message and its body; `None` at the end of the stream.
    ///
    /// # Errors
    /// [`ParseError::Malformed`].
    pub(super) fn next(&mut self) -> Result<Option<(Message<'a>, &'a [u8])>, ParseError> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        if self.take(CONTINUATION.len())? != CONTINUATION {
            return Err(malformed("a message does not begin with four bytes of 255"));
        }
        let (length, _) = self.take(4)?.as_chunks();
        let length = i32::from_le_bytes(length.first().copied().unwrap_or_default());
        if length == 0 {
            return if self.rest.is_empty() { Ok(None) } else { Err(malformed("bytes follow its end")) };
        }
        let length = usize::try_from(length).map_err(|_negative| cut())?;
        let message = root_as_message(self.take(length)?)
            .map_err(|error| malformed(format!("a message is invalid: {error}")))?;
        if !matches!(message.version(), MetadataVersion::V4 | MetadataVersion::V5) {
            return Err(malformed("its version is not 4 or 5"));
        }
        let body = usize::try_from(message.bodyLength()).map_err(|_negative| cut())?;
        Ok(Some((message, self.take(body)?)))
    }

    fn take(&mut self, bytes: usize) -> Result<&'a [u8], ParseError> {
        let (taken, rest) = self.rest.split_at_checked(bytes).ok_or_else(cut)?;
        self.rest = rest;
        Ok(taken)
    }
}

fn cut() -> ParseError {
    malformed("it ends in a message")
}
