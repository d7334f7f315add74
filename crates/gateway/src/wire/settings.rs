//! The settings of HTTP/2, as they were measured.

/// The windows and buffers of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The window of each stream. It stays as it is: with h2 0.4.20 streams stood still for ever after it had shrunk under
    /// load.
    pub stream_window: u32,
    /// The longest frame, and what is read from a socket at once.
    pub chunk: u32,
    /// What one stream may have waiting for the socket: a chunk that goes and one that follows.
    pub send_buffer: usize,
    /// Streams at a time.
    pub streams: u32,
}

/// Never binding: with four times a stream's window, eight paused streams stopped all others.
const CONNECTION_WINDOW: u32 = 1 << 30;
/// Bytes of headers of one request; ours have under 200.
const HEADERS_MAX: u32 = 16 << 10;
/// Streams that were reset and are not forgotten yet; more end the connection (RFC 9113, 10.5; CVE-2023-44487).
const RESETS_MAX: usize = 64;

impl Settings {
    /// For connections that carry services.
    pub const DATA: Self =
        Self { stream_window: 2 << 20, chunk: 64 << 10, send_buffer: 128 << 10, streams: 1024 };

    /// Sets up a server.
    pub fn server(&self) -> h2::server::Builder {
        let mut builder = h2::server::Builder::new();
        builder
            .initial_window_size(self.stream_window)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_frame_size(self.chunk)
            .max_concurrent_streams(self.streams)
            .max_header_list_size(HEADERS_MAX)
            .max_send_buffer_size(self.send_buffer)
            .max_pending_accept_reset_streams(RESETS_MAX)
            .max_concurrent_reset_streams(RESETS_MAX);
        builder
    }

    /// Sets up a client.
    pub fn client(&self) -> h2::client::Builder {
        let mut builder = h2::client::Builder::new();
        builder
            .initial_window_size(self.stream_window)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_frame_size(self.chunk)
            .max_header_list_size(HEADERS_MAX)
            .max_send_buffer_size(self.send_buffer)
            .enable_push(false);
        builder
    }
}
