//! Which cryptography TLS uses: aws-lc, set once for the process.

use rustls::crypto::{CryptoProvider, aws_lc_rs};

/// Makes aws-lc the provider of every TLS connection; a second call changes nothing.
pub fn install() {
    if CryptoProvider::get_default().is_none() && aws_lc_rs::default_provider().install_default().is_err() {
        // Two threads may pass the check at once. The loser finds the same provider in place.
        tracing::trace!("the TLS provider was already installed");
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn installing_twice_leaves_a_provider() {
        super::install();
        super::install();
        assert!(rustls::crypto::CryptoProvider::get_default().is_some());
    }
}
