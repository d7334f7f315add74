//! Sizes and times as people write them.

use std::time::Duration;

/// Reads a number of bytes: `500MB`, `10GiB`, or bytes alone.
pub fn bytes(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let factor: u64 = match unit.trim() {
        "" | "B" => 1,
        "kB" | "KB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "TB" => 1_000_000_000_000,
        "KiB" | "Ki" => 1 << 10,
        "MiB" | "Mi" => 1 << 20,
        "GiB" | "Gi" => 1 << 30,
        "TiB" | "Ti" => 1 << 40,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(factor)
}

/// Reads a time: `30s`, `5m`, `12h`, `7d`.
pub fn duration(text: &str) -> Option<Duration> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(digits);
    let factor: u64 = match unit.trim() {
        "s" => 1,
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(factor).map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_times_are_read_with_their_units() {
        assert_eq!(bytes("10GiB"), Some(10 << 30));
        assert_eq!(bytes("500 MB"), Some(500_000_000));
        assert_eq!(bytes("4096"), Some(4096));
        assert_eq!([bytes("10 gigs"), bytes("GiB"), bytes("-1"), bytes("99999999TiB")], [None; 4]);
        assert_eq!(duration("90s"), Some(Duration::from_secs(90)));
        assert_eq!(duration("7d"), Some(Duration::from_secs(604_800)));
        assert_eq!([duration("5"), duration("m"), duration("1w")], [None; 3]);
    }
}
