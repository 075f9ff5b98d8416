//! [`Network`]: a range of IP addresses in CIDR notation, such as `10.0.0.0/8` (RFC 4632, RFC 4291).
//!
//! An IPv4-mapped IPv6 address is treated as the IPv4 address.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use ipnet::IpNet;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The addresses with a common prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network(IpNet);

/// Why a text is not a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NetworkError {
    /// The text is not an address with an optional prefix length.
    #[error("expected ADDRESS or ADDRESS/BITS, as in \"127.0.0.1\", \"10.0.0.0/8\" or \"fd00::/8\"")]
    Malformed,
    /// Bits of the address after the prefix are set.
    #[error("the address has bits beyond the {0} that count; those must be 0")]
    BeyondBits(u8),
}

impl Network {
    /// Whether an address belongs to the network.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        self.0.contains(&address.to_canonical())
    }
}

impl FromStr for Network {
    type Err = NetworkError;

    // The parser of `ipnet` also accepts octets with leading zeros, which some programs read as octal.
    fn from_str(text: &str) -> Result<Self, NetworkError> {
        let malformed = NetworkError::Malformed;
        let (address, bits) =
            text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
        let address: IpAddr = address.parse().map_err(|_invalid| malformed)?;
        let is_plain = |bits: &str| bits.len() <= 3 && bits.bytes().all(|byte| byte.is_ascii_digit());
        let network = match bits {
            None => IpNet::from(address),
            Some(bits) if is_plain(bits) => {
                let bits = bits.parse().map_err(|_invalid| malformed)?;
                IpNet::new(address, bits).map_err(|_too_long| malformed)?
            }
            Some(_) => return Err(malformed),
        };
        if network.addr() == network.network() {
            Ok(Self(canonical(network)))
        } else {
            Err(NetworkError::BeyondBits(network.prefix_len()))
        }
    }
}

/// The network of IPv4 that an IPv4-mapped one is; peers are compared in that form.
fn canonical(network: IpNet) -> IpNet {
    match (network.addr().to_canonical(), network.prefix_len().checked_sub(96)) {
        (IpAddr::V4(address), Some(bits)) if network.addr().is_ipv6() => {
            IpNet::new(IpAddr::V4(address), bits).unwrap_or(network)
        }
        _ => network,
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Serialize for Network {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Network {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_contains_the_addresses_with_its_prefix() {
        for (network, inside, outside) in [
            ("127.0.0.1", "127.0.0.1", "127.0.0.2"),
            ("127.0.0.1/32", "::ffff:127.0.0.1", "126.255.255.255"),
            ("10.0.0.0/8", "10.255.255.255", "11.0.0.0"),
            ("192.168.128.0/17", "192.168.255.1", "192.168.127.255"),
            ("0.0.0.0/0", "255.255.255.255", "::1"),
            ("::1", "::1", "::2"),
            ("fd00::/8", "fdff::1", "fe00::1"),
            ("::/0", "2001:db8::1", "10.0.0.1"),
            ("::ffff:127.0.0.1", "127.0.0.1", "127.0.0.2"),
            ("::ffff:10.0.0.0/104", "::ffff:10.1.2.3", "11.0.0.0"),
        ] {
            let parsed: Network = network.parse().unwrap();
            assert!(parsed.contains(inside.parse().unwrap()), "{network} {inside}");
            assert!(!parsed.contains(outside.parse().unwrap()), "{network} {outside}");
            assert_eq!(parsed.to_string().parse::<Network>(), Ok(parsed));
        }
    }

    #[test]
    fn invalid_networks_are_rejected() {
        for text in [
            "",
            "localhost",
            "10.0.0",
            "10.0.0.0/",
            "10.0.0.0/33",
            "::/129",
            "10.0.0.0/+8",
            "::1/0128",
            "010.0.0.0/8",
        ] {
            assert_eq!(text.parse::<Network>(), Err(NetworkError::Malformed), "{text}");
        }
        assert_eq!("10.0.0.1/8".parse::<Network>(), Err(NetworkError::BeyondBits(8)));
        assert_eq!("10.0.0.1/0".parse::<Network>(), Err(NetworkError::BeyondBits(0)));
    }
}
