//! The certificate authority and keys of one control plane.
//!
//! Everything is made from a key kept in the control plane's folder, so that another process can issue an
//! identity for a running control plane. Certificates are valid for decades: no clock is read.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PublicKeyData as _, SigningKey as _,
};
use yasna::models::ObjectIdentifier;
use yasna::{DERWriter, Tag, tags};

const CA_NAME: &str = "bailey testkit";
const COMMON_NAME: [u64; 4] = [2, 5, 4, 3];
const ORGANIZATION: [u64; 4] = [2, 5, 4, 10];
const EXTENDED_KEY_USAGE: [u64; 4] = [2, 5, 29, 37];
const CLIENT_AUTH: [u64; 9] = [1, 3, 6, 1, 5, 5, 7, 3, 2];
const ECDSA_WITH_SHA256: [u64; 7] = [1, 2, 840, 10045, 4, 3, 2];

/// A certificate authority whose certificate and key are in a folder.
pub struct Ca {
    certificate: String,
    key: KeyPair,
}

/// A certificate and its key, both as PEM.
pub struct Identity {
    pub certificate: String,
    pub key: String,
}

impl Ca {
    /// Opens the authority kept in a folder, or makes one there.
    pub fn open_or_create(folder: &Path) -> Result<Self> {
        if folder.join("ca.key").is_file() {
            return Self::open(folder);
        }
        let key = KeyPair::generate().context("make the key of the certificate authority")?;
        let certificate = ca_params()?.self_signed(&key).context("make the certificate authority")?.pem();
        write(&folder.join("ca.crt"), &certificate)?;
        write_private(&folder.join("ca.key"), &key.serialize_pem())?;
        Ok(Self { certificate, key })
    }

    /// Opens the authority kept in a folder.
    pub fn open(folder: &Path) -> Result<Self> {
        let certificate = read(&folder.join("ca.crt"))?;
        let key = KeyPair::from_pem(&read(&folder.join("ca.key"))?)
            .context("parse the key of the certificate authority")?;
        Ok(Self { certificate, key })
    }

    /// Returns the authority's own certificate as PEM.
    pub fn certificate(&self) -> &str {
        &self.certificate
    }

    /// Issues a serving certificate for names and addresses.
    pub fn server(&self, names: &[&str]) -> Result<Identity> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names)?;
        params.distinguished_name.push(DnType::CommonName, "kube-apiserver");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let key = KeyPair::generate()?;
        let ca = ca_params()?;
        let certificate = params
            .signed_by(&key, &Issuer::from_params(&ca, &self.key))
            .context("issue a serving certificate")?;
        Ok(Identity { certificate: certificate.pem(), key: key.serialize_pem() })
    }

    /// Issues a client certificate that the API server reads as a user in groups.
    pub fn client(&self, user: &str, groups: &[&str]) -> Result<Identity> {
        let key = KeyPair::generate()?;
        let to_sign = to_be_signed(user, groups, &key);
        let signature =
            self.key.sign(&to_sign).with_context(|| format!("sign a certificate for user `{user}`"))?;
        let certificate = yasna::construct_der(|writer| {
            writer.write_sequence(|writer| {
                writer.next().write_der(&to_sign);
                signature_algorithm(writer.next());
                writer.next().write_bitvec_bytes(&signature, signature.len() * 8);
            });
        });
        Ok(Identity { certificate: pem("CERTIFICATE", &certificate), key: key.serialize_pem() })
    }
}

/// Makes the key pair that signs ServiceAccount tokens, unless the folder has it.
pub fn service_account_keys(folder: &Path) -> Result<()> {
    if folder.join("sa.key").is_file() {
        return Ok(());
    }
    let key = KeyPair::generate().context("make the ServiceAccount key")?;
    write(&folder.join("sa.pub"), &key.public_key_pem())?;
    write_private(&folder.join("sa.key"), &key.serialize_pem())
}

/// Writes a file that only its owner reads.
pub fn write_private(path: &Path, text: &str) -> Result<()> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .with_context(|| format!("write `{}`", path.display()))
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| format!("write `{}`", path.display()))
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("read `{}`", path.display()))
}

fn ca_params() -> Result<CertificateParams> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, CA_NAME);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    Ok(params)
}

/// Writes RFC 5280's TBSCertificate with one organisation for each group.
fn to_be_signed(user: &str, groups: &[&str], key: &KeyPair) -> Vec<u8> {
    let subject_key = key.subject_public_key_info();
    // Unique without a counter: it is the hash of a fresh key. A leading 1 keeps it positive and minimal.
    let mut serial = vec![1_u8];
    serial.extend(blake3::hash(&subject_key).as_bytes().iter().take(15));
    yasna::construct_der(|writer| {
        writer.write_sequence(|writer| {
            writer.next().write_tagged(Tag::context(0), |writer| writer.write_u8(2));
            writer.next().write_bigint_bytes(&serial, true);
            signature_algorithm(writer.next());
            writer.next().write_sequence(|writer| attribute(writer.next(), &COMMON_NAME, CA_NAME));
            writer.next().write_sequence(|writer| {
                utc_time(writer.next(), "200101000000Z");
                utc_time(writer.next(), "491231235959Z");
            });
            writer.next().write_sequence(|writer| {
                for group in groups {
                    attribute(writer.next(), &ORGANIZATION, group);
                }
                attribute(writer.next(), &COMMON_NAME, user);
            });
            writer.next().write_der(&subject_key);
            writer.next().write_tagged(Tag::context(3), |writer| {
                writer.write_sequence(|writer| writer.next().write_sequence(client_auth));
            });
        });
    })
}

fn client_auth(writer: &mut yasna::DERWriterSeq<'_>) {
    writer.next().write_oid(&ObjectIdentifier::from_slice(&EXTENDED_KEY_USAGE));
    let usage = yasna::construct_der(|writer| {
        writer.write_sequence(|writer| {
            writer.next().write_oid(&ObjectIdentifier::from_slice(&CLIENT_AUTH));
        });
    });
    writer.next().write_bytes(&usage);
}

fn signature_algorithm(writer: DERWriter<'_>) {
    writer.write_sequence(|writer| {
        writer.next().write_oid(&ObjectIdentifier::from_slice(&ECDSA_WITH_SHA256));
    });
}

fn attribute(writer: DERWriter<'_>, kind: &[u64], value: &str) {
    writer.write_set(|writer| {
        writer.next().write_sequence(|writer| {
            writer.next().write_oid(&ObjectIdentifier::from_slice(kind));
            writer.next().write_utf8_string(value);
        });
    });
}

fn utc_time(writer: DERWriter<'_>, time: &str) {
    writer.write_tagged_implicit(tags::TAG_UTCTIME, |writer| writer.write_bytes(time.as_bytes()));
}

fn pem(label: &str, der: &[u8]) -> String {
    let mut text = format!("-----BEGIN {label}-----\n");
    let body: Vec<char> = BASE64.encode(der).chars().collect();
    for line in body.chunks(64) {
        text.extend(line);
        text.push('\n');
    }
    text.push_str(&format!("-----END {label}-----\n"));
    text
}
