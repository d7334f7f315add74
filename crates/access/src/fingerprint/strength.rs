//! How hard a value is to guess, and whether it looks like a secret at all. Judged by the value alone, so that
//! equal values are judged equally wherever they lie.
//!
//! The estimate is for somebody who tries words, years, runs and rows of keys first, and everything else character
//! by character. It errs on the low side for short values: what is called weak is still compared, inside the process.

use zeroize::Zeroizing;

/// Fewer bits than these are searched through in hours once a key is lost, so nothing of such a value is exported.
pub(super) const FLOOR_BITS: f64 = 40.0;
/// A value without any hint is taken for a secret from here on.
const RANDOM_BITS: f64 = 60.0;

const CHARACTERS_MAX: usize = 256;

const WORD_BITS: f64 = 8.0;
const YEAR_BITS: f64 = 6.0;
const RUN_BITS: f64 = 4.0;
/// What a letter of a pronounceable word adds.
const SPEECH_BITS: f64 = 2.2;

/// Words that a guesser tries first: parts of passwords, and names of roles, products and places.
#[rustfmt::skip]
const COMMON: &[&str] = &[
    "access", "acme", "admin", "administrator", "alpha", "apple", "august", "autumn", "backup", "batman", "beta",
    "change", "changeit", "changeme", "charlie", "cloud", "cluster", "company", "connect", "control", "credential",
    "customer", "database", "default", "demo", "develop", "development", "donald", "dragon", "elastic", "example",
    "football", "freedom", "gitlab", "grafana", "guest", "harbor", "hello", "hunter", "iloveyou", "internet", "jenkins",
    "keycloak", "kubernetes", "letmein", "local", "login", "manager", "master", "minio", "monkey", "mysql",
    "mustang", "october", "operator", "oracle", "passphrase", "password", "passw", "platform", "please", "postgres",
    "princess", "private", "production", "public", "qwerty", "qwertz", "rabbitmq", "redis", "reader", "registry",
    "replace", "root", "sample", "secret", "secure", "security", "server", "service", "shadow", "silver", "spring",
    "staging", "start", "storage", "strong", "summer", "sunshine", "super", "superman", "system", "temp", "tenant",
    "test", "testing", "token", "trustno", "user", "username", "value", "vault", "welcome", "winter", "writer", "your",
];

const ROWS: [&str; 5] = [
    "abcdefghijklmnopqrstuvwxyz",
    "0123456789",
    "qwertyuiop",
    "asdfghjkl",
    "zyxwvutsrqponmlkjihgfedcba9876543210",
];

/// Prefixes by which issuers mark their tokens.
#[rustfmt::skip]
const TOKEN_PREFIXES: &[&str] = &[
    "AIza", "ATATT", "SG.", "dckr_pat_", "dckr_oat_", "dop_v1_", "figd_", "github_pat_", "gho_", "ghp_", "ghr_", "ghs_",
    "ghu_", "glc_", "gldt-", "glpat-", "glrt-", "glsa_", "hvb.", "hvr.", "hvs.", "lin_api_", "npm_", "pypi-", "rk_live_",
    "shpat_", "sk-", "sk_live_", "tskey-", "xapp-", "xoxa-", "xoxb-", "xoxp-", "xoxr-", "ya29.",
];

/// Texts that stand where a secret would, or that mean none.
#[rustfmt::skip]
const CONSTANTS: &[&str] = &[
    "", "true", "false", "yes", "no", "on", "off", "null", "nil", "none", "~", "undefined", "n/a", "todo", "tbd",
    "enabled", "disabled", "default", "redacted", "placeholder", "example", "unset", "empty", "optional", "required",
    "replaceme", "replace_me", "replace-me",
];

/// What the start of a text is made of.
struct Estimate {
    bits: f64,
    /// How much of it is words, from 0 to 1.
    spoken: f64,
}

/// Estimates the bits of a text.
pub(super) fn bits(text: &str) -> f64 {
    estimate(text).bits
}

/// Looks at the start of a text, which decides whatever follows.
fn estimate(text: &str) -> Estimate {
    let mut raw = Zeroizing::new(Vec::with_capacity(CHARACTERS_MAX));
    raw.extend(text.chars().take(CHARACTERS_MAX));
    let plain: Zeroizing<Vec<char>> = Zeroizing::new(raw.iter().copied().map(plain_letter).collect());
    let pool = pool_bits(&raw);
    let (mut at, mut sum, mut spoken) = (0, 0.0, 0);
    while let (Some(raw @ [_, ..]), Some(plain)) = (raw.get(at..), plain.get(at..)) {
        let piece = piece(raw, plain, pool);
        sum += piece.bits;
        spoken += if piece.spoken { piece.length } else { 0 };
        at += piece.length;
    }
    let mut distinct = raw.clone();
    distinct.sort_unstable();
    let distinct = distinct.chunk_by(|a, b| a == b).count();
    Estimate { bits: sum.min(distinct as f64 * pool * 1.5), spoken: spoken as f64 / raw.len().max(1) as f64 }
}

/// Estimates the bits of bytes that are no text.
pub(super) fn raw_bits(bytes: &[u8]) -> f64 {
    let distinct: std::collections::BTreeSet<_> = bytes.iter().collect();
    8.0 * bytes.len().min(distinct.len().saturating_mul(2)) as f64
}

/// Says whether a text without any hint is a secret: long, of mixed classes, hardly any of it words.
pub(super) fn looks_random(text: &str) -> bool {
    let bytes = text.as_bytes();
    if bytes.len() < 16 || !bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || b"+/=_-.~".contains(byte))
    {
        return false;
    }
    let class = |byte: &u8| (byte.is_ascii_digit(), byte.is_ascii_uppercase());
    let pairs = || bytes.windows(2).filter(|pair| pair.iter().all(u8::is_ascii_alphanumeric));
    let changes = pairs().filter(|pair| pair.first().map(class) != pair.last().map(class)).count();
    if changes * 5 < pairs().count() || !bytes.iter().any(u8::is_ascii_alphabetic) {
        return false;
    }
    let estimate = estimate(text);
    estimate.bits >= RANDOM_BITS && estimate.spoken < 0.4 && !is_host(text) && !is_uuid(text)
}

/// Says whether a text is words for the most part.
pub(super) fn is_wordy(text: &str) -> bool {
    estimate(text).spoken >= 0.5
}

/// Says whether a text is a path of files.
pub(super) fn is_path(text: &str) -> bool {
    text.starts_with("./") || text.starts_with('/') && !looks_random(text)
}

/// Says whether a text has the prefix of a known issuer and enough after it.
pub(super) fn is_known_token(text: &str) -> bool {
    text.len() >= 20
        && !text.contains(char::is_whitespace)
        && TOKEN_PREFIXES.iter().any(|prefix| text.starts_with(prefix))
        && bits(text) >= FLOOR_BITS
}

/// Says whether a text must not be shown, wherever it was found.
pub(super) fn looks_secret(text: &str) -> bool {
    is_known_token(text) || looks_random(text)
}

/// Says whether a text that somebody typed may be shown as a public fact: a user, a host, a URL, a mail address.
///
/// Hosts of cloud providers have random labels, and are shown nevertheless.
pub(super) fn may_be_shown(text: &str) -> bool {
    let part_may = |part: &str| !looks_secret(part) || is_host(&part.to_ascii_lowercase());
    text.split(|letter: char| "/:@?&=, ".contains(letter)).all(part_may)
}

/// Says whether a text stands where a secret would be: a template, a reference, a constant, a ciphertext of SOPS.
pub(super) fn is_placeholder(text: &str) -> bool {
    let lower = Zeroizing::new(text.to_ascii_lowercase());
    let wrapped = |open: &str, close: &str| text.starts_with(open) && text.ends_with(close);
    CONSTANTS.contains(&lower.as_str())
        || text.len() <= 4 && text.bytes().all(|byte| byte.is_ascii_digit())
        || text.chars().all(|letter| "xX*.-_?#0 •".contains(letter))
        || wrapped("<", ">")
        || wrapped("${", "}")
        || wrapped("$(", ")")
        || wrapped("{{", "}}")
        || wrapped("%(", ")s")
        || wrapped("ENC[", "]")
        || wrapped("$__", "}")
        || ["vault:", "ref+", "op://", "arn:", "secretref:", "awssm://", "gcpsm://"]
            .iter()
            .any(|p| lower.starts_with(p))
        || (lower.starts_with("your-") || lower.starts_with("your_")) && bits(text) < FLOOR_BITS
}

/// Says whether a text is an address, a path, a number or a date: public where no name says otherwise.
pub(super) fn is_plain_data(text: &str) -> bool {
    let number = text.bytes().all(|byte| byte.is_ascii_digit() || b".:,-+TZvKMGi% ".contains(&byte));
    let mail = text.split_once('@').is_some_and(|(_, domain)| is_host(domain));
    let endpoint =
        text.rsplit_once(':').is_some_and(|(host, port)| is_host(host) && port.parse::<u16>().is_ok());
    number || is_path(text) || mail || endpoint || is_host(text) || text.contains("://")
}

/// Says whether a text is a DNS name with at least two labels and a top one of letters.
pub(super) fn is_host(text: &str) -> bool {
    let Some((_, top)) = text.rsplit_once('.') else { return false };
    (2..=24).contains(&top.len())
        && top.bytes().all(|byte| byte.is_ascii_lowercase())
        && text.len() <= 253
        && text.split('.').all(|label| {
            (1..=63).contains(&label.len())
                && label
                    .bytes()
                    .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
        })
}

/// Says whether a text is a UUID in its usual spelling.
pub(super) fn is_uuid(text: &str) -> bool {
    let lengths: Vec<_> = text.split('-').map(str::len).collect();
    lengths == [8, 4, 4, 4, 12] && text.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
}

/// A piece of a text: how many characters, what they are worth, and whether they are words.
struct Piece {
    length: usize,
    bits: f64,
    spoken: bool,
}

/// Takes the next piece off a text that is not empty.
fn piece(raw: &[char], plain: &[char], pool: f64) -> Piece {
    if let Some(length) = common_word(plain) {
        let capital = raw.iter().take(length).any(|letter| !letter.is_lowercase());
        return Piece { length, bits: WORD_BITS + if capital { 1.0 } else { 0.0 }, spoken: true };
    }
    if let Some(length) = year(raw) {
        return Piece { length, bits: YEAR_BITS, spoken: false };
    }
    let same = raw.iter().take_while(|letter| Some(*letter) == raw.first()).count();
    let length = same.max(row(raw));
    if length >= 3 {
        return Piece { length, bits: RUN_BITS + (length as f64).log2(), spoken: false };
    }
    let length = speech(raw);
    if length >= 4 {
        return Piece { length, bits: length as f64 * SPEECH_BITS, spoken: true };
    }
    Piece { length: 1, bits: pool, spoken: false }
}

fn common_word(plain: &[char]) -> Option<usize> {
    COMMON
        .iter()
        .filter(|word| plain.len() >= word.len() && word.chars().zip(plain).all(|(a, b)| a == *b))
        .map(|word| word.len())
        .max()
}

fn year(raw: &[char]) -> Option<usize> {
    let first: String = raw.iter().take(4).collect();
    let rest_is_digit = raw.get(4).is_some_and(char::is_ascii_digit);
    first.parse::<u16>().ok().filter(|year| (1950..2050).contains(year) && !rest_is_digit).map(|_| 4)
}

/// Returns how many characters go along the alphabet, the digits or a row of keys.
fn row(raw: &[char]) -> usize {
    let along = |row: &&str| {
        let mut rest = row
            .chars()
            .skip_while(|letter| raw.first().is_some_and(|first| !letter.eq_ignore_ascii_case(first)));
        raw.iter()
            .take_while(|letter| rest.next().is_some_and(|next| next.eq_ignore_ascii_case(letter)))
            .count()
    };
    ROWS.iter().map(along).max().unwrap_or(0)
}

/// Returns how many letters from the start could be spoken: one case after the first, vowels at least every fourth,
/// at least one in five, and no more than two in a row.
fn speech(raw: &[char]) -> usize {
    let upper = raw.iter().take(2).all(|letter| letter.is_ascii_uppercase());
    let (mut length, mut consonants, mut vowels, mut in_row) = (0, 0, 0, 0);
    for (at, letter) in raw.iter().enumerate() {
        let fits = letter.is_ascii_alphabetic() && (at == 0 || letter.is_ascii_uppercase() == upper);
        let vowel = "aeiouyAEIOUY".contains(*letter);
        (consonants, in_row) = if vowel { (0, in_row + 1) } else { (consonants + 1, 0) };
        if !fits || consonants > 3 || in_row > 2 || "qxzQXZ".contains(*letter) {
            break;
        }
        vowels += usize::from(vowel);
        length = at + 1;
    }
    if vowels * 5 >= length { length } else { 0 }
}

/// Undoes the usual replacements of letters.
fn plain_letter(letter: char) -> char {
    match letter {
        '0' => 'o',
        '1' | '!' => 'i',
        '3' => 'e',
        '4' | '@' => 'a',
        '5' | '$' => 's',
        '7' => 't',
        other => other.to_ascii_lowercase(),
    }
}

/// Returns the bits of one character out of the classes that a text uses.
fn pool_bits(raw: &[char]) -> f64 {
    if raw.iter().all(|letter| letter.is_ascii_hexdigit() || *letter == '-') {
        return if raw.iter().all(|letter| !letter.is_ascii_alphabetic()) { 3.3 } else { 4.0 };
    }
    let any = |class: fn(&char) -> bool| raw.iter().any(class);
    let mut pool = 0.0;
    for (used, size) in [
        (any(char::is_ascii_lowercase), 26.0),
        (any(char::is_ascii_uppercase), 26.0),
        (any(char::is_ascii_digit), 10.0),
        (any(|letter| !letter.is_ascii_alphanumeric()), 8.0),
    ] {
        pool += if used { size } else { 0.0 };
    }
    f64::log2(pool).max(1.0)
}
