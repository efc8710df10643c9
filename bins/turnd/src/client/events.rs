//! A session's event stream as a reader sees it: one envelope after the other.

use bytes::{Buf, BytesMut};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde_json::Value;

/// One open event stream.
pub(crate) struct Events {
    body: Incoming,
    buffer: BytesMut,
}

impl Events {
    pub(super) fn of(body: Incoming) -> Self {
        Self { body, buffer: BytesMut::new() }
    }

    /// The next event's envelope, or nothing when the stream ended, be it in order or by a cut.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        loop {
            while let Some(frame) = take_frame(&mut self.buffer) {
                if let Some(envelope) = frame.lines().find_map(|line| line.strip_prefix("data: ")) {
                    return serde_json::from_str(envelope).ok();
                }
            }
            let frame = self.body.frame().await?.ok()?;
            if let Some(data) = frame.data_ref() {
                self.buffer.extend_from_slice(data);
            }
        }
    }
}

/// Takes the text up to the first blank line, if one has arrived.
fn take_frame(buffer: &mut BytesMut) -> Option<String> {
    let end = buffer.windows(2).position(|pair| pair == b"\n\n")?;
    let frame = buffer.split_to(end);
    buffer.advance(2);
    Some(String::from_utf8_lossy(&frame).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_taken_only_when_its_blank_line_has_arrived() {
        let mut buffer = BytesMut::from("event: x\ndata: {}\n");
        assert_eq!(take_frame(&mut buffer), None);
        buffer.extend_from_slice(b"\nretry");
        assert_eq!(take_frame(&mut buffer).as_deref(), Some("event: x\ndata: {}"));
        assert_eq!(&buffer[..], b"retry");
    }
}
