//! How sockets are set up and ended.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::net::TcpStream;

/// Unsent bytes that the kernel takes of a tunnel: more would wait there, where no turn can be given.
const NOT_SENT_MAX: u32 = 128 << 10;
/// A path that is dead is noticed after this, though middleboxes drop idle flows after minutes without a word.
const KEEPALIVE: Duration = Duration::from_secs(30);

/// Sets up the socket of a tunnel.
pub fn tunnel(stream: &TcpStream) -> io::Result<()> {
    let socket = SockRef::from(stream);
    socket.set_tcp_notsent_lowat(NOT_SENT_MAX)?;
    socket.set_tcp_user_timeout(Some(KEEPALIVE))?;
    plain(stream)
}

/// Sets up the socket of a client or of a backend.
pub fn plain(stream: &TcpStream) -> io::Result<()> {
    let socket = SockRef::from(stream);
    socket.set_tcp_nodelay(true)?;
    socket.set_tcp_keepalive(
        &TcpKeepalive::new().with_time(KEEPALIVE).with_interval(KEEPALIVE / 3).with_retries(3),
    )
}

/// Makes the socket end with a RST when it is dropped: what is still queued is thrown away.
pub fn abort(stream: &impl AsFd) {
    linger(stream, Some(Duration::ZERO));
}

/// Makes the socket end in order again.
pub fn orderly(stream: &impl AsFd) {
    linger(stream, None);
}

fn linger(stream: &impl AsFd, linger: Option<Duration>) {
    if let Err(error) = SockRef::from(stream).set_linger(linger) {
        tracing::debug!(%error, "a socket keeps the way it ends");
    }
}

/// Tells how many bytes a socket has to read, 0 at its end.
pub fn readable(stream: impl AsFd) -> usize {
    rustix::io::ioctl_fionread(stream).map_or(0, |bytes| usize::try_from(bytes).unwrap_or(usize::MAX))
}
