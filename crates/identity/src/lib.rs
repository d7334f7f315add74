//! Who a process of the tunnel is and whom it trusts: certificates, the authorities of the installation, TLS made of
//! both, and how a certificate is got and kept.

pub mod clock;
pub mod credentials;
pub mod enrol;
pub mod files;
pub mod key;
pub mod renew;
pub mod tls;
pub mod tokens;
pub mod trust;
