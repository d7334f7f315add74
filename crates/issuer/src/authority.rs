//! The key that signs, and the authorities that others are told to trust.

use std::fmt;
use std::time::{Duration, SystemTime};

use bailey_identity::key;
use bailey_tunnel::lifetime::BACKDATED;
use bailey_tunnel::names::{Identity, InstallationName};
use rcgen::{
    BasicConstraints, CertificateParams, CertificateSigningRequestParams, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, PublicKeyData,
    SanType, SerialNumber,
};
use rustls::pki_types::CertificateSigningRequestDer;
use rustls::pki_types::pem::PemObject as _;
use zeroize::Zeroizing;

/// How long an authority made here is valid.
const AUTHORITY_LIFE: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

/// Signs certificates of one installation.
pub struct Authority {
    installation: InstallationName,
    issuer: Issuer<'static, KeyPair>,
    /// What is sent behind a leaf: intermediates, in PEM.
    chain: String,
    /// What others are told to trust, in PEM.
    bundle: String,
}

/// The key is not shown.
impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authority").field("installation", &self.installation).finish_non_exhaustive()
    }
}

/// An authority in PEM, as it is kept in a Secret.
#[derive(Clone, PartialEq, Eq)]
pub struct Kept {
    /// The certificate that signs, then those above it (`tls.crt`).
    pub certificate: String,
    /// Its key (`tls.key`).
    pub key: Zeroizing<String>,
    /// What others are told to trust (`ca.crt`): more than one while the authority changes.
    pub bundle: String,
}

/// The key is not shown.
impl fmt::Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kept").finish_non_exhaustive()
    }
}

/// An authority, or a request, that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum AuthorityError {
    /// The certificate and its key.
    #[error("the authority's `tls.crt` and `tls.key` cannot be used")]
    Unusable(#[source] rcgen::Error),
    /// Making one.
    #[error("an authority cannot be made")]
    Make(#[source] rcgen::Error),
    /// The request.
    #[error("the request (`csr`) is no PKCS #10 in PEM, or is not signed with its own key")]
    Request,
    /// The key of the request.
    #[error("the request (`csr`) is for a key that is not P-256")]
    Algorithm,
    /// Signing.
    #[error("the certificate cannot be signed")]
    Sign(#[source] rcgen::Error),
    /// No randomness.
    #[error("this machine gives no randomness")]
    Random,
}

/// The public key that somebody asks a certificate for, proven to be theirs.
#[derive(Clone, PartialEq, Eq)]
pub struct Requested {
    public: rcgen::PublicKey,
    hash: String,
}

impl Requested {
    /// Reads a request in PEM and checks its signature. What else it says is not looked at.
    pub fn read(csr: &str) -> Result<Self, AuthorityError> {
        let der = CertificateSigningRequestDer::from_pem_slice(csr.as_bytes())
            .map_err(|_| AuthorityError::Request)?;
        let params = CertificateSigningRequestParams::from_der(&der).map_err(|_| AuthorityError::Request)?;
        if params.public_key.algorithm() != &PKCS_ECDSA_P256_SHA256 {
            return Err(AuthorityError::Algorithm);
        }
        let hash = key::hash(&params.public_key.subject_public_key_info());
        Ok(Self { public: params.public_key, hash })
    }

    /// Gives the SHA-256 of the public key in hex.
    pub fn hash(&self) -> &str {
        &self.hash
    }
}

impl Authority {
    /// Takes one that was kept.
    pub fn open(installation: InstallationName, kept: &Kept) -> Result<Self, AuthorityError> {
        let key = KeyPair::from_pem(&kept.key).map_err(AuthorityError::Unusable)?;
        let issuer = Issuer::from_ca_cert_pem(&kept.certificate, key).map_err(AuthorityError::Unusable)?;
        // Whoever trusts the signing certificate itself needs nothing behind a leaf, and it does no harm.
        Ok(Self { installation, issuer, chain: kept.certificate.clone(), bundle: kept.bundle.clone() })
    }

    /// Makes the authority of a new installation.
    pub fn create(installation: &InstallationName, now: SystemTime) -> Result<Kept, AuthorityError> {
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(AuthorityError::Make)?;
        let mut params = CertificateParams::default();
        let mut name = DistinguishedName::new();
        name.push(DnType::CommonName, format!("Bailey {installation}"));
        params.distinguished_name = name;
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        (params.not_before, params.not_after) = ((now - BACKDATED).into(), (now + AUTHORITY_LIFE).into());
        params.serial_number = Some(serial()?);
        let certificate = params.self_signed(&key).map_err(AuthorityError::Make)?.pem();
        Ok(Kept { bundle: certificate.clone(), certificate, key: Zeroizing::new(key.serialize_pem()) })
    }

    /// Gives the installation.
    pub fn installation(&self) -> &InstallationName {
        &self.installation
    }

    /// Gives what others are told to trust, in PEM.
    pub fn bundle(&self) -> &str {
        &self.bundle
    }

    /// Signs a certificate for an identity, and gives it with its chain, in PEM.
    pub fn sign(
        &self,
        identity: &Identity,
        requested: &Requested,
        now: SystemTime,
        life: Duration,
    ) -> Result<String, AuthorityError> {
        self.sign_key(identity, &requested.public, now, life)
    }

    /// Makes a key and a certificate for the issuer itself, both in PEM.
    pub fn own(
        &self,
        identity: &Identity,
        now: SystemTime,
        life: Duration,
    ) -> Result<(String, Zeroizing<String>), AuthorityError> {
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(AuthorityError::Make)?;
        let certificate = self.sign_key(identity, &key, now, life)?;
        Ok((certificate, Zeroizing::new(key.serialize_pem())))
    }

    fn sign_key(
        &self,
        identity: &Identity,
        public: &impl PublicKeyData,
        now: SystemTime,
        life: Duration,
    ) -> Result<String, AuthorityError> {
        let uri = identity.to_string().try_into().map_err(AuthorityError::Sign)?;
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.subject_alt_names = vec![SanType::URI(uri)];
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        (params.not_before, params.not_after) = ((now - BACKDATED).into(), (now + life).into());
        params.serial_number = Some(serial()?);
        let leaf = params.signed_by(public, &self.issuer).map_err(AuthorityError::Sign)?.pem();
        Ok(leaf + &self.chain)
    }
}

/// 127 random bits, positive (RFC 5280, 4.1.2.2).
fn serial() -> Result<SerialNumber, AuthorityError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|_| AuthorityError::Random)?;
    let [first, ..] = &mut bytes;
    *first &= 0x7f;
    Ok(SerialNumber::from_slice(&bytes))
}
