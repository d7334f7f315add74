//! A loopback port that nobody else gets between choosing it and listening on it.

use anyhow::{Context as _, Result};
use tokio::net::TcpSocket;

/// A port held by a bound socket that never listens; a child that sets `SO_REUSEPORT` shares it.
pub struct Port {
    number: u16,
    _held: TcpSocket,
}

impl Port {
    /// Lets the kernel choose a free port and holds it until drop.
    pub fn reserve() -> Result<Self> {
        let socket = TcpSocket::new_v4()?;
        socket.set_reuseport(true)?;
        socket.bind(([127, 0, 0, 1], 0).into()).context("reserve a port on 127.0.0.1")?;
        Ok(Self { number: socket.local_addr()?.port(), _held: socket })
    }

    /// Returns the port's number.
    pub fn number(&self) -> u16 {
        self.number
    }
}
