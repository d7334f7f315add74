//! Networks as configurations write them, `10.0.0.0/8` or `fd00::/8`, to tell clients by their addresses.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// The addresses that begin alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    /// How many bits of it.
    prefix: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no network; write an address and its length, as in `10.0.0.0/8` or `fd00::/8`")]
pub struct NetworkError(String);

impl Network {
    /// Whether an address is in it. An IPv4 address that comes by an IPv6 socket is one of IPv4.
    pub fn has(&self, address: IpAddr) -> bool {
        let bits = |address: IpAddr| match address {
            IpAddr::V4(address) => (u128::from(u32::from(address)) << 96, 32),
            IpAddr::V6(address) => (u128::from(address), 128),
        };
        let ((own, length), (other, of)) = (bits(self.address), bits(address.to_canonical()));
        let differing = own ^ other;
        length == of && (self.prefix == 0 || differing.leading_zeros() >= u32::from(self.prefix))
    }
}

impl FromStr for Network {
    type Err = NetworkError;

    fn from_str(text: &str) -> Result<Self, NetworkError> {
        let wrong = || NetworkError(text.chars().take(64).collect());
        let (address, prefix) = text.split_once('/').ok_or_else(wrong)?;
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let digits = prefix.bytes().all(|byte| byte.is_ascii_digit());
        let prefix: u8 = prefix.parse().map_err(|_| wrong())?;
        let longest = if address.is_ipv4() { 32 } else { 128 };
        if digits && prefix <= longest { Ok(Self { address, prefix }) } else { Err(wrong()) }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_have_the_addresses_that_begin_alike() {
        let has =
            |network: &str, address: &str| network.parse::<Network>().unwrap().has(address.parse().unwrap());
        assert!(has("10.0.0.0/8", "10.255.0.1") && !has("10.0.0.0/8", "11.0.0.1"));
        assert!(has("10.0.0.0/8", "::ffff:10.1.2.3"));
        assert!(has("192.0.2.7/32", "192.0.2.7") && !has("192.0.2.7/32", "192.0.2.6"));
        assert!(has("0.0.0.0/0", "198.51.100.1") && !has("0.0.0.0/0", "fd00::1"));
        assert!(has("fd00::/8", "fdff::1") && !has("fd00::/8", "fe00::1"));
        for wrong in ["10.0.0.0", "10.0.0.0/33", "fd00::/129", "x/8", "10.0.0.0/+8", "10.0.0.0/", ""] {
            assert!(wrong.parse::<Network>().is_err(), "{wrong}");
        }
    }
}
