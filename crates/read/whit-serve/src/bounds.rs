//! The limits of clients.

use std::time::Duration;

/// Bounds of a server.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Connections at a time. The oldest without a request that has the token makes room for the next; where all have sent
    /// one, others get status 503.
    pub max_connections: usize,
    /// Bytes of the request line and all headers.
    pub max_head_bytes: usize,
    /// Bytes of a request's body.
    pub max_body_bytes: usize,
    /// Time until a request has come as a whole.
    pub request_time: Duration,
    /// Time until a response is gone as a whole.
    pub response_time: Duration,
}

/// Headers of a request.
pub(crate) const MAX_HEADERS: usize = 64;

impl Default for Bounds {
    fn default() -> Self {
        Bounds {
            max_connections: 32,
            max_head_bytes: 16 << 10,
            max_body_bytes: 4 << 20,
            request_time: Duration::from_secs(10),
            response_time: Duration::from_secs(60),
        }
    }
}
