//! The public facts of a certificate. A certificate alone is no credential.

use x509_cert::Certificate;
use x509_cert::der::{Decode as _, Encode as _};
use x509_cert::ext::pkix::BasicConstraints;

use super::public_key::PublicKey;
use super::{PublicFacts, fact};

/// A certificate as far as it matters: whose key it speaks for, and what it says.
pub(super) struct Facts {
    pub(super) key: PublicKey,
    pub(super) facts: PublicFacts,
}

/// Reads a certificate (RFC 5280).
pub(super) fn read(der: &[u8]) -> Option<Facts> {
    let certificate = Certificate::from_der(der).ok()?;
    let body = certificate.tbs_certificate();
    let key = PublicKey::of_spki(&body.subject_public_key_info().to_der().ok()?);
    let is_ca =
        matches!(body.get_extension::<BasicConstraints>(), Ok(Some((_, constraints))) if constraints.ca);
    let facts = PublicFacts::from([
        (fact::SPKI, key.hex()),
        (fact::SUBJECT, body.subject().to_string()),
        (fact::ISSUER, body.issuer().to_string()),
        (fact::IS_CA, is_ca.to_string()),
        (fact::NOT_AFTER, body.validity().not_after.to_date_time().to_string()),
    ]);
    Some(Facts { key, facts })
}
