//! [`PublicAddresses`]: resolves the name of a host that others may let lead anywhere, to addresses outside of this network alone.
//!
//! The operator names a host, but its addresses are what the owner of the domain says, at any time. [`PrivateAddress`] says which
//! addresses are of this network; those that embed an address of IPv4 count as that one.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

/// Why an address is not public.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PrivateAddress {
    /// Where cloud providers have their metadata services.
    #[error("a link-local address")]
    LinkLocal,
    /// Of this machine, or of a network that is not the internet.
    #[error("a loopback or private address")]
    Private,
}

impl PrivateAddress {
    /// What an address is; `None` if it is public.
    #[must_use]
    pub fn of(address: IpAddr) -> Option<Self> {
        match address {
            IpAddr::V4(address) => Self::of_v4(address),
            IpAddr::V6(address) => Self::of_v6(address),
        }
    }

    fn of_v4(address: Ipv4Addr) -> Option<Self> {
        let [first, second, third, _] = address.octets();
        // RFC 6890: this network, shared, protocol assignments, benchmarks; multicast and reserved.
        let is_special = first == 0
            || (first == 100 && second & 0xc0 == 64)
            || (first == 192 && second == 0 && third == 0)
            || (first == 198 && second & 0xfe == 18)
            || first >= 224;
        match address.is_link_local() {
            true => Some(Self::LinkLocal),
            false if address.is_loopback() || address.is_private() || is_special => Some(Self::Private),
            false => None,
        }
    }

    fn of_v6(address: Ipv6Addr) -> Option<Self> {
        let segments = address.segments();
        let [.., high, low] = segments;
        let v4 =
            |high: u16, low: u16| Self::of_v4(Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)));
        // EC2 has its metadata service at this address beside the link-local one.
        if address.is_unicast_link_local() || segments == [0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254] {
            return Some(Self::LinkLocal);
        }
        if address.is_loopback()
            || address.is_unspecified()
            || address.is_unique_local()
            || address.is_multicast()
            || segments[0] & 0xffc0 == 0xfec0
        {
            return Some(Self::Private);
        }
        match segments {
            // Mapped, compatible, and those of translators (RFC 6052, RFC 8215) and of 6to4.
            [0, 0, 0, 0, 0, 0 | 0xffff, _, _] | [0, 0, 0, 0, 0xffff, 0, _, _] | [0x64, 0xff9b, ..] => {
                v4(high, low)
            }
            [0x2002, high, low, ..] => v4(high, low),
            _ => None,
        }
    }
}

/// Resolves one name so; others, such as that of a proxy, to all their addresses.
#[derive(Clone, Debug)]
pub(super) struct PublicAddresses {
    host: String,
}

impl PublicAddresses {
    /// For requests to a host.
    pub(super) fn of(host: &str) -> Self {
        Self { host: host.to_owned() }
    }
}

impl Resolve for PublicAddresses {
    fn resolve(&self, name: Name) -> Resolving {
        let is_checked = name.as_str().eq_ignore_ascii_case(&self.host);
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let addresses: Vec<SocketAddr> = if is_checked { public(found)? } else { found.collect() };
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}

/// The public ones among the addresses of a name.
///
/// # Errors
/// What the first one is, if none is public.
fn public(found: impl Iterator<Item = SocketAddr>) -> Result<Vec<SocketAddr>, PrivateAddress> {
    let (mut addresses, mut refused) = (Vec::new(), None);
    for address in found {
        match PrivateAddress::of(address.ip()) {
            None => addresses.push(address),
            Some(kind) => refused = refused.or(Some(kind)),
        }
    }
    match refused {
        Some(kind) if addresses.is_empty() => Err(kind),
        _ => Ok(addresses),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_this_network_are_distinguished_from_those_of_the_internet() {
        use PrivateAddress as P;
        for (text, expected) in [
            ("127.0.0.1", Some(P::Private)),
            ("127.9.9.9", Some(P::Private)),
            ("10.1.2.3", Some(P::Private)),
            ("172.31.0.1", Some(P::Private)),
            ("172.32.0.1", None),
            ("192.168.1.1", Some(P::Private)),
            ("169.254.169.254", Some(P::LinkLocal)),
            ("100.100.100.200", Some(P::Private)),
            ("100.128.0.1", None),
            ("192.0.0.192", Some(P::Private)),
            ("198.19.0.1", Some(P::Private)),
            ("0.0.0.0", Some(P::Private)),
            ("0.1.2.3", Some(P::Private)),
            ("255.255.255.255", Some(P::Private)),
            ("224.0.0.1", Some(P::Private)),
            ("1.1.1.1", None),
            ("8.8.8.8", None),
            ("::1", Some(P::Private)),
            ("::", Some(P::Private)),
            ("fe80::1", Some(P::LinkLocal)),
            ("fd00:ec2::254", Some(P::LinkLocal)),
            ("fd12::1", Some(P::Private)),
            ("fec0::1", Some(P::Private)),
            ("ff02::1", Some(P::Private)),
            ("::ffff:169.254.169.254", Some(P::LinkLocal)),
            ("::ffff:8.8.8.8", None),
            ("::127.0.0.1", Some(P::Private)),
            ("64:ff9b::a9fe:a9fe", Some(P::LinkLocal)),
            ("64:ff9b::808:808", None),
            ("2002:7f00:1::", Some(P::Private)),
            ("2606:4700::1111", None),
        ] {
            assert_eq!(PrivateAddress::of(text.parse().unwrap()), expected, "{text}");
        }
    }

    #[test]
    fn of_the_addresses_of_a_name_the_public_ones_are_left() {
        let address = |text: &str| SocketAddr::new(text.parse().unwrap(), 0);
        let mixed = [address("10.0.0.1"), address("8.8.8.8")];
        assert_eq!(public(mixed.into_iter()), Ok(vec![address("8.8.8.8")]));
        assert_eq!(public([address("169.254.169.254")].into_iter()), Err(PrivateAddress::LinkLocal));
        assert_eq!(public(std::iter::empty()), Ok(Vec::new()));
    }

    #[tokio::test]
    async fn only_the_host_of_the_requests_is_checked() {
        let resolver = PublicAddresses::of("localhost");
        let refused = resolver.resolve("LocalHost".parse().unwrap()).await.err().unwrap();
        assert_eq!(refused.downcast_ref(), Some(&PrivateAddress::Private));
        let proxy = PublicAddresses::of("example.org");
        assert!(proxy.resolve("localhost".parse().unwrap()).await.unwrap().next().is_some());
    }
}
