//! Who this process is and whom it trusts: certificates, the authorities of the installation, and TLS made of both.

pub mod credentials;
pub mod files;
pub mod tls;
pub mod trust;
