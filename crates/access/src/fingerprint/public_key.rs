//! From a private key in any encoding to its public half, as SubjectPublicKeyInfo (RFC 5280).
//!
//! Elliptic-curve points are computed from the private number where the curve is known, so that it does not matter
//! whether an encoding carries the point. RSA keys carry their modulus in all encodings.

use curve25519_dalek::edwards::EdwardsPoint;
use curve25519_dalek::montgomery::MontgomeryPoint;
use p256::elliptic_curve::sec1::ToSec1Point as _;
use pkcs8::PrivateKeyInfoRef;
use sec1::EcPrivateKey;
use sha2::{Digest as _, Sha256, Sha512};
use x509_cert::der::asn1::{AnyRef, BitStringRef, ObjectIdentifier, OctetStringRef, UintRef};
use x509_cert::der::{Decode as _, Encode as _, Reader as _, SliceReader, Tag};
use x509_cert::spki::{AlgorithmIdentifier, SubjectPublicKeyInfo};
use zeroize::Zeroizing;

use super::keys::hex;

const RSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.1");
const RSA_PSS: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.10");
const EC: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.2.1");
const P256: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.3.1.7");
const P384: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.132.0.34");
const P521: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.132.0.35");
const ED25519: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.101.112");
const X25519: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.101.110");

/// The SHA-256 of a SubjectPublicKeyInfo, by which a key pair is known everywhere.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct PublicKey(pub(super) [u8; 32]);

impl PublicKey {
    /// Hashes the DER of a SubjectPublicKeyInfo.
    pub(super) fn of_spki(der: &[u8]) -> Self {
        Self(Sha256::digest(der).into())
    }

    /// Returns the digest as `openssl pkey -pubin -outform der | sha256sum` prints it.
    pub(super) fn hex(&self) -> String {
        hex(&self.0)
    }

    /// Reads a private key in PKCS#8, PKCS#1 or SEC 1.
    pub(super) fn of_private(der: &[u8]) -> Option<Self> {
        of_pkcs8(der).or_else(|| of_pkcs1(der)).or_else(|| of_sec1(der, None))
    }

    /// Takes the numbers of an RSA key, big-endian.
    pub(super) fn rsa(modulus: &[u8], exponent: &[u8]) -> Option<Self> {
        let modulus = UintRef::new(modulus).ok()?;
        if modulus.is_empty() || modulus.as_bytes() == [0] {
            return None;
        }
        let numbers = [modulus.to_der().ok()?, UintRef::new(exponent).ok()?.to_der().ok()?].concat();
        let key = AnyRef::new(Tag::Sequence, &numbers).ok()?.to_der().ok()?;
        spki(RSA, Some(AnyRef::NULL), &key)
    }

    /// Takes the curve and the uncompressed point of an elliptic-curve key.
    pub(super) fn ec(curve: ObjectIdentifier, point: &[u8]) -> Option<Self> {
        spki(EC, Some(AnyRef::from(&curve)), point)
    }

    /// Takes the point by the name that SSH gives the curve (RFC 5656).
    pub(super) fn ec_named(curve: &[u8], point: &[u8]) -> Option<Self> {
        let curve = match curve {
            b"nistp256" => P256,
            b"nistp384" => P384,
            b"nistp521" => P521,
            _ => return None,
        };
        Self::ec(curve, point)
    }

    /// Takes the point by the name that JSON web keys give the curve (RFC 7518, 6.2).
    pub(super) fn ec_of_jwk(curve: &str, point: &[u8]) -> Option<Self> {
        match curve {
            "P-256" => Self::ec(P256, point),
            "P-384" => Self::ec(P384, point),
            "P-521" => Self::ec(P521, point),
            _ => None,
        }
    }

    /// Takes the 32 bytes of an Ed25519 public key.
    pub(super) fn ed25519(point: &[u8]) -> Option<Self> {
        spki(ED25519, None, point)
    }
}

fn spki(oid: ObjectIdentifier, parameters: Option<AnyRef<'_>>, key: &[u8]) -> Option<PublicKey> {
    let info = SubjectPublicKeyInfo {
        algorithm: AlgorithmIdentifier { oid, parameters },
        subject_public_key: BitStringRef::from_bytes(key).ok()?,
    };
    Some(PublicKey::of_spki(&info.to_der().ok()?))
}

/// RFC 5958.
fn of_pkcs8(der: &[u8]) -> Option<PublicKey> {
    let info = PrivateKeyInfoRef::try_from(der).ok()?;
    let secret = info.private_key.as_bytes();
    let curve = info.algorithm.parameters.and_then(|parameters| parameters.decode_as().ok());
    match info.algorithm.oid {
        RSA | RSA_PSS => of_pkcs1(secret),
        EC => of_sec1(secret, curve),
        ED25519 => seed(secret).and_then(|seed| PublicKey::ed25519(&ed25519_public(&seed))),
        X25519 => seed(secret).and_then(|seed| spki(X25519, None, &x25519_public(&seed))),
        _ => None,
    }
}

/// RFC 8017, appendix A.1.2: version, modulus, public exponent, and then what is secret.
fn of_pkcs1(der: &[u8]) -> Option<PublicKey> {
    let mut reader = SliceReader::new(der).ok()?;
    let numbers = reader.sequence(|reader| {
        u8::decode(reader)?;
        let numbers = (UintRef::decode(reader)?, UintRef::decode(reader)?);
        let mut more = 0;
        while !reader.is_finished() {
            AnyRef::decode(reader)?;
            more += 1;
        }
        Ok::<_, x509_cert::der::Error>((numbers, more))
    });
    // Six more numbers follow. DSA keys, which begin alike, have three.
    let ((modulus, exponent), more) = numbers.ok()?;
    if more < 6 { None } else { PublicKey::rsa(modulus.as_bytes(), exponent.as_bytes()) }
}

/// RFC 5915. The curve is in the key, or in the PKCS#8 around it.
fn of_sec1(der: &[u8], curve: Option<ObjectIdentifier>) -> Option<PublicKey> {
    let key = EcPrivateKey::try_from(der).ok()?;
    let curve = key.parameters.and_then(|parameters| parameters.named_curve()).or(curve)?;
    match curve {
        P256 => {
            let key = p256::SecretKey::from_slice(key.private_key).ok()?;
            PublicKey::ec(curve, key.public_key().to_sec1_point(false).as_bytes())
        }
        P384 => {
            let key = p384::SecretKey::from_slice(key.private_key).ok()?;
            PublicKey::ec(curve, key.public_key().to_sec1_point(false).as_bytes())
        }
        _ => PublicKey::ec(curve, key.public_key?),
    }
}

/// RFC 8410: an octet string within the octet string.
fn seed(der: &[u8]) -> Option<Zeroizing<[u8; 32]>> {
    let bytes = <&OctetStringRef>::from_der(der).ok()?.as_bytes();
    bytes.try_into().ok().map(Zeroizing::new)
}

/// RFC 8032, 5.1.5.
fn ed25519_public(seed: &[u8; 32]) -> [u8; 32] {
    let hash: Zeroizing<[u8; 64]> = Zeroizing::new(Sha512::digest(seed).into());
    let scalar = Zeroizing::new(hash.first_chunk::<32>().copied().unwrap_or_default());
    EdwardsPoint::mul_base_clamped(*scalar).compress().to_bytes()
}

/// RFC 7748, 6.1.
pub(super) fn x25519_public(secret: &[u8; 32]) -> [u8; 32] {
    MontgomeryPoint::mul_base_clamped(*secret).to_bytes()
}
