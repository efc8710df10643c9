//! Where a request comes from: this machine or another one (wire rules, section 12.3).

use std::net::{IpAddr, SocketAddr};

use std::sync::Arc;

use hyper::HeaderMap;
use tokio::sync::OwnedSemaphorePermit;

/// Headers that a proxy adds to what it hands on for somebody else.
const HANDED_ON: [&str; 3] = ["forwarded", "x-forwarded-for", "x-real-ip"];

/// A connection's place among those that may be open, held by whoever still uses it.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    _permit: Arc<OwnedSemaphorePermit>,
}

impl Place {
    /// The place that this permit stands for.
    pub(crate) fn new(permit: OwnedSemaphorePermit) -> Self {
        Self { _permit: Arc::new(permit) }
    }
}

/// The other end of a connection. It goes with every request that comes over it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Caller {
    address: Option<IpAddr>,
}

impl Caller {
    /// Whoever is at that address; an unknown one is nowhere near.
    pub(crate) fn at<E>(address: Result<SocketAddr, E>) -> Self {
        Self { address: address.ok().map(|address| address.ip()) }
    }

    /// Where the caller is, as coarse as addresses are given out: an IPv4 address, or the network that an IPv6 customer has.
    pub(crate) fn neighbourhood(self) -> Option<String> {
        Some(match self.address?.to_canonical() {
            IpAddr::V4(address) => address.to_string(),
            IpAddr::V6(address) => {
                let [a, b, c, d, ..] = address.segments();
                format!("{a:x}:{b:x}:{c:x}:{d:x}::/64")
            }
        })
    }

    /// Whether a request with these headers was sent by a program on this machine. One that a proxy handed on was not, wherever
    /// the proxy runs: it may come from anywhere, and who forges such a header only loses by it.
    pub(crate) fn is_local(self, headers: &HeaderMap) -> bool {
        let near = self.address.is_some_and(|address| address.to_canonical().is_loopback());
        near && !HANDED_ON.iter().any(|name| headers.contains_key(*name))
    }
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;

    fn is_local(address: &str, header: Option<&'static str>) -> bool {
        let mut headers = HeaderMap::new();
        if let Some(name) = header {
            headers.insert(name, HeaderValue::from_static("127.0.0.1"));
        }
        Caller::at(address.parse::<SocketAddr>()).is_local(&headers)
    }

    #[test]
    fn this_machine_is_any_loopback_address_however_it_is_written() {
        for address in ["127.0.0.1:1", "127.9.9.9:1", "[::1]:1", "[::ffff:127.0.0.1]:1"] {
            assert!(is_local(address, None), "{address}");
        }
    }

    #[test]
    fn every_other_address_and_none_at_all_is_another_machine() {
        for address in ["10.0.0.1:1", "0.0.0.0:1", "[::]:1", "[::ffff:10.0.0.1]:1", "[fe80::1]:1", "nowhere"] {
            assert!(!is_local(address, None), "{address}");
        }
    }

    #[test]
    fn what_a_proxy_hands_on_comes_from_another_machine_even_if_the_proxy_is_here() {
        for name in HANDED_ON {
            assert!(!is_local("127.0.0.1:1", Some(name)), "{name}");
        }
        assert!(is_local("127.0.0.1:1", Some("accept")));
    }
}
