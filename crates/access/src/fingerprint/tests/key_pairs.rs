//! The same key pair, whatever it is written as.

use bech32::{Bech32, Hrp};
use pkcs8::PrivateKeyInfoRef;
use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair, PublicKeyData as _, RsaKeySize};
use sec1::{EcParameters, EcPrivateKey};
use serde_json::json;
use sha2::{Digest as _, Sha256};
use x509_cert::der::asn1::{AnyRef, ObjectIdentifier, UintRef};
use x509_cert::der::{Decode as _, Encode as _, Reader as _, SliceReader};

use super::super::keys::hex;
use super::super::{Credential, CredentialKind, fact};
use super::{base64, kinds, one, opaque, pem};

fn spki(pair: &KeyPair) -> String {
    hex(&Sha256::digest(pair.subject_public_key_info()))
}

/// What PKCS#8 has inside: PKCS#1 for RSA, SEC 1 for curves.
fn inner(pair: &KeyPair) -> Vec<u8> {
    PrivateKeyInfoRef::try_from(pair.serialized_der()).unwrap().private_key.as_bytes().to_vec()
}

fn ssh_string(bytes: &[u8]) -> Vec<u8> {
    [&u32::try_from(bytes.len()).unwrap().to_be_bytes(), bytes].concat()
}

/// An OpenSSH key whose secret half is encrypted, that is, noise.
fn ssh_file(blob: &[u8]) -> String {
    let parts = [
        b"openssh-key-v1\0".to_vec(),
        ssh_string(b"aes256-ctr"),
        ssh_string(b"bcrypt"),
        ssh_string(b"salt"),
        1u32.to_be_bytes().to_vec(),
        ssh_string(blob),
        ssh_string(&[0x5a; 160]),
    ];
    pem("OPENSSH PRIVATE KEY", &parts.concat())
}

fn kubeconfig(user: &serde_json::Value) -> String {
    json!({
        "apiVersion": "v1", "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": "https://api.one.example"}}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
    })
    .to_string()
}

#[test]
fn an_rsa_key_is_the_same_in_pkcs1_pkcs8_openssh_a_kubeconfig_argo_cd_and_a_key_file_of_google() {
    let pair = KeyPair::generate_rsa_for(&rcgen::PKCS_RSA_SHA256, RsaKeySize::_2048).unwrap();
    let pkcs1 = inner(&pair);
    let (pkcs1_pem, pkcs8_pem) = (pem("RSA PRIVATE KEY", &pkcs1), pem("PRIVATE KEY", pair.serialized_der()));
    let (modulus, exponent) = numbers(&pkcs1);
    let blob =
        [ssh_string(b"ssh-rsa"), ssh_string(&exponent), ssh_string(&[&[0], modulus.as_slice()].concat())]
            .concat();
    let google = json!({
        "type": "service_account", "project_id": "p", "private_key_id": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b", "private_key": pkcs8_pem,
        "client_email": "robot@p.iam.gserviceaccount.com",
    });
    let argo = json!({"tlsClientConfig": {"keyData": base64(&pkcs1_pem)}}).to_string();
    let forms = [
        ("tls.key", pkcs1_pem.clone(), CredentialKind::PrivateKey),
        ("pkcs8", pkcs8_pem.clone(), CredentialKind::PrivateKey),
        ("crlf", pkcs8_pem.replace('\n', "\r\n"), CredentialKind::PrivateKey),
        ("escaped", pkcs8_pem.replace('\n', "\\n"), CredentialKind::PrivateKey),
        (
            "with-text",
            format!("Bag Attributes\n    friendlyName: x\n{pkcs8_pem}"),
            CredentialKind::PrivateKey,
        ),
        ("base64", base64(&pkcs1_pem), CredentialKind::PrivateKey),
        ("base64-der", base64(pair.serialized_der()), CredentialKind::PrivateKey),
        (
            "values.yaml",
            format!("tls:\n  key: |\n    {}\n", pkcs8_pem.replace('\n', "\n    ")),
            CredentialKind::PrivateKey,
        ),
        ("ssh", ssh_file(&blob), CredentialKind::SshKey),
        ("value", kubeconfig(&json!({"client-key-data": base64(&pkcs8_pem)})), CredentialKind::KubeClientKey),
        ("config", argo, CredentialKind::KubeClientKey),
        ("google.json", google.to_string(), CredentialKind::GcpServiceAccountKey),
    ];
    let found: Vec<Credential> = forms.iter().map(|(name, text, _)| one(name, text)).collect();
    for (credential, (name, _, kind)) in found.iter().zip(&forms) {
        assert_eq!(credential.kind, *kind, "{name}");
        assert_eq!(credential.fingerprints, found[0].fingerprints, "{name}");
        assert_eq!(credential.facts[fact::SPKI], spki(&pair), "{name}");
    }
    assert_eq!(found[11].facts[fact::CLIENT_EMAIL], "robot@p.iam.gserviceaccount.com");
    let der = [("key".to_owned(), pkcs1)].into();
    let der = super::extractor().credentials(super::Origin::Secret("Opaque"), &der).credentials;
    assert_eq!(der[0].fingerprints, found[0].fingerprints);
}

fn numbers(pkcs1: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let mut reader = SliceReader::new(pkcs1).unwrap();
    let numbers = reader.sequence(|reader| {
        u8::decode(reader)?;
        let numbers =
            (UintRef::decode(reader)?.as_bytes().to_vec(), UintRef::decode(reader)?.as_bytes().to_vec());
        while !reader.is_finished() {
            AnyRef::decode(reader)?;
        }
        Ok::<_, x509_cert::der::Error>(numbers)
    });
    numbers.unwrap()
}

#[test]
fn an_elliptic_key_is_the_same_with_and_without_its_point() {
    for (algorithm, curve) in [
        (&rcgen::PKCS_ECDSA_P256_SHA256, "1.2.840.10045.3.1.7"),
        (&rcgen::PKCS_ECDSA_P384_SHA384, "1.3.132.0.34"),
    ] {
        let pair = KeyPair::generate_for(algorithm).unwrap();
        let sec1 = inner(&pair);
        let curve = EcParameters::NamedCurve(ObjectIdentifier::new_unwrap(curve));
        let full =
            EcPrivateKey { parameters: Some(curve), ..EcPrivateKey::try_from(sec1.as_slice()).unwrap() };
        let bare = EcPrivateKey { public_key: None, ..full.clone() };
        let texts = [
            pem("PRIVATE KEY", pair.serialized_der()),
            pem("EC PRIVATE KEY", &full.to_der().unwrap()),
            pem("EC PRIVATE KEY", &bare.to_der().unwrap()),
        ];
        for text in texts {
            assert_eq!(one("tls.key", &text).facts[fact::SPKI], spki(&pair));
        }
    }
}

/// The point of this curve is not computed, but is in every file that is met.
#[test]
fn a_key_on_the_largest_curve_goes_by_the_point_it_carries() {
    let pair = KeyPair::generate_for(&rcgen::PKCS_ECDSA_P521_SHA512).unwrap();
    let found = one("tls.key", &pem("PRIVATE KEY", pair.serialized_der()));
    assert_eq!(found.facts[fact::SPKI], spki(&pair));
    let blob =
        [ssh_string(b"ecdsa-sha2-nistp521"), ssh_string(b"nistp521"), ssh_string(pair.public_key_raw())]
            .concat();
    assert_eq!(one("ssh", &ssh_file(&blob)).fingerprints, found.fingerprints);
}

/// RFC 7517, appendix A.2, the key on a curve; RFC 8037, appendix A.
#[test]
fn a_json_web_key_is_the_key_pair_it_describes() {
    let (x, y) =
        ("MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4", "4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM");
    let d = "870MB6gfuTJ4HtUnUvYMyJpr5eUZNP4Bk43bVdj3eAE";
    let key = json!({"kty": "EC", "crv": "P-256", "x": x, "y": y, "d": d, "kid": "1"});
    let curve = EcParameters::NamedCurve(ObjectIdentifier::new_unwrap("1.2.840.10045.3.1.7"));
    let secret = super::super::armor::decode(d).unwrap();
    let sec1 =
        EcPrivateKey { private_key: &secret, parameters: Some(curve), public_key: None }.to_der().unwrap();
    let found = one("jwks.json", &json!({"keys": [key]}).to_string());
    assert_eq!(found.fingerprints, one("tls.key", &pem("EC PRIVATE KEY", &sec1)).fingerprints);

    let seed = "nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A";
    let okp = json!({"kty": "OKP", "crv": "Ed25519", "d": seed, "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"});
    let pkcs8 =
        [hex_bytes("302e020100300506032b657004220420"), super::super::armor::decode(seed).unwrap().to_vec()]
            .concat();
    assert_eq!(
        one("jwk", &okp.to_string()).fingerprints,
        one("key", &pem("PRIVATE KEY", &pkcs8)).fingerprints
    );

    let public = json!({"keys": [{"kty": "EC", "crv": "P-256", "x": x, "y": y}]}).to_string();
    assert_eq!(opaque(&[("jwks.json", &public)]), []);
    let symmetric = one("jwk", &json!({"kty": "oct", "k": super::STRONG}).to_string());
    assert!(symmetric.shares_with(&one("key", super::STRONG)));
}

/// RFC 8032, 7.1, test 1; and RFC 7748, 6.1.
#[test]
fn edwards_and_montgomery_keys_are_derived_as_the_standards_say() {
    let seed = hex_bytes("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60");
    let public = hex_bytes("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a");
    let pkcs8 = [hex_bytes("302e020100300506032b657004220420"), seed].concat();
    let info = [hex_bytes("302a300506032b6570032100"), public.clone()].concat();
    let key = one("key", &pem("PRIVATE KEY", &pkcs8));
    assert_eq!(key.facts[fact::SPKI], hex(&Sha256::digest(info)));
    let ssh = one("ssh", &ssh_file(&[ssh_string(b"ssh-ed25519"), ssh_string(&public)].concat()));
    assert_eq!(ssh.fingerprints, key.fingerprints);

    let secret = hex_bytes("77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a");
    let public = hex_bytes("8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a");
    let pkcs8 = [hex_bytes("302e020100300506032b656e04220420"), secret].concat();
    let info = [hex_bytes("302a300506032b656e032100"), public].concat();
    assert_eq!(one("key", &pem("PRIVATE KEY", &pkcs8)).facts[fact::SPKI], hex(&Sha256::digest(info)));
}

fn hex_bytes(text: &str) -> Vec<u8> {
    (0..text.len() / 2).map(|at| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).unwrap()).collect()
}

#[test]
fn a_certificate_says_what_its_key_is_for_and_is_no_credential() {
    let pair = KeyPair::generate().unwrap();
    let mut parameters = CertificateParams::new(Vec::new()).unwrap();
    parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    parameters.distinguished_name.push(rcgen::DnType::CommonName, "one-ca");
    let certificate = parameters.self_signed(&pair).unwrap();
    assert_eq!(opaque(&[("ca.crt", &certificate.pem()), ("key.pub", &pair.public_key_pem())]), []);

    let found = opaque(&[("tls.crt", &certificate.pem()), ("tls.key", &pair.serialize_pem())]);
    assert_eq!(kinds(&found), [CredentialKind::PrivateKey]);
    assert_eq!(found[0].facts[fact::IS_CA], "true");
    assert_eq!(found[0].facts[fact::SUBJECT], "CN=one-ca");
    assert_eq!(found[0].facts[fact::NOT_AFTER], "4096-01-01T00:00:00Z");

    // Whoever holds the key of the authority that a kubeconfig trusts can be found.
    let config = json!({
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {
            "server": "https://api.one.example", "certificate-authority-data": base64(certificate.pem()),
        }}],
        "users": [{"name": "u", "user": {"token": super::STRONG}}],
    });
    assert_eq!(one("value", &config.to_string()).facts[fact::CA_SPKI], found[0].facts[fact::SPKI]);
}

#[test]
fn an_identity_of_age_shows_its_recipient() {
    let secret: [u8; 32] = std::array::from_fn(|n| (n as u8).wrapping_mul(91) ^ 0x42);
    let identity = bech32::encode_upper::<Bech32>(Hrp::parse("age-secret-key-").unwrap(), &secret).unwrap();
    let file =
        one("keys.txt", &format!("# created: 2026-01-01T00:00:00Z\n# public key: age1x\n{identity}\n"));
    let values = one("values.yaml", &format!("sops:\n  ageKey: {identity}\n"));
    assert_eq!((file.kind, values.kind), (CredentialKind::AgeIdentity, CredentialKind::AgeIdentity));
    assert_eq!(file.fingerprints, values.fingerprints);
    let (prefix, public) = bech32::decode(&file.facts[fact::RECIPIENT]).unwrap();
    assert_eq!(prefix.as_str(), "age");
    let basepoint = curve25519_dalek::constants::X25519_BASEPOINT;
    assert_eq!(public, basepoint.mul_clamped(secret).to_bytes());
}

/// The sample key of RFC 9580, A.1, with a made-up secret half.
#[test]
fn an_openpgp_key_shows_its_fingerprint_whether_or_not_it_is_encrypted() {
    let public = hex_bytes(
        "0453f35f0b16092b06010401da470f010107403f098994bdd916ed4053197934e4a87c80733a1280d62f8010992e43ee3b2406",
    );
    let file = |secret: &[u8]| {
        let body = [public.as_slice(), secret].concat();
        let packet = [&[0xc5, u8::try_from(body.len()).unwrap()], body.as_slice()].concat();
        let text = pem("PGP PRIVATE KEY BLOCK", &packet);
        one(
            "key.asc",
            &text
                .replace("-----\n", "-----\nComment: a sample\n\n")
                .replace("\n-----END", "\n=abcd\n-----END"),
        )
    };
    let (clear, encrypted) = (file(&[0, 1, 2, 3]), file(&[0xfe, 9, 3, 8, 1, 2, 3]));
    assert_eq!(clear.kind, CredentialKind::PgpKey);
    assert_eq!(clear.facts[fact::PGP_FINGERPRINT], "C959BDBAFA32A2F89A153B678CFDE12197965A9A");
    assert_eq!(clear.fingerprints, encrypted.fingerprints);
}

#[test]
fn what_is_closed_is_compared_as_a_whole() {
    let closed = pem("ENCRYPTED PRIVATE KEY", &(0u8..200).collect::<Vec<_>>());
    assert_eq!(one("a", &closed).kind, CredentialKind::EncryptedKey);
    assert!(one("a", &closed).shares_with(&one("b", &base64(&closed))));
    let store: Vec<u8> = [0xfe, 0xed, 0xfe, 0xed, 0, 0, 0, 2].into_iter().chain(100..250).collect();
    let stores =
        [("keystore.jks".to_owned(), store.clone()), ("b64".to_owned(), base64(&store).into_bytes())].into();
    let stores = super::extractor().credentials(super::Origin::Secret("Opaque"), &stores).credentials;
    assert_eq!(kinds(&stores), [CredentialKind::Keystore, CredentialKind::Keystore]);
    assert_eq!(stores[0].fingerprints, stores[1].fingerprints);
}
