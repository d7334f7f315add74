//! The parts of a process over real sockets and real signals.

#[cfg(test)]
mod admin;
#[cfg(test)]
mod leader;
#[cfg(test)]
mod leases;
#[cfg(test)]
mod signals;
