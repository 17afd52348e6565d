//! Addresses of this machine's network interfaces.
//!
//! In: nothing. Out: names with addresses, as getifaddrs(3) lists them.

use std::ffi::CStr;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ptr;

/// Returns all addresses of all interfaces, each with the name of its interface, in the order of the system.
#[allow(unsafe_code, reason = "the standard library does not list network interfaces")]
pub fn addresses() -> io::Result<Vec<(String, IpAddr)>> {
    let mut list: *mut libc::ifaddrs = ptr::null_mut();
    // SAFETY: `list` is a valid place for the pointer that the function writes.
    if unsafe { libc::getifaddrs(&raw mut list) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let mut addresses = Vec::new();
    let mut next = list;
    // SAFETY: the list ends with a null pointer, and its entries live until `freeifaddrs`.
    while let Some(entry) = unsafe { next.as_ref() } {
        next = entry.ifa_next;
        // SAFETY: the address of an entry is null, or its type matches its field `sa_family`.
        if let Some(address) = unsafe { address(entry.ifa_addr) } {
            // SAFETY: the name is a text that ends with a zero byte, and it lives until `freeifaddrs`.
            let name = unsafe { CStr::from_ptr(entry.ifa_name) };
            addresses.push((name.to_string_lossy().into_owned(), address));
        }
    }
    // SAFETY: the list comes from `getifaddrs`, and nothing refers to it any more.
    unsafe { libc::freeifaddrs(list) };
    Ok(addresses)
}

/// Returns the IP address at `socket`, or `None` for a null pointer and for other families.
///
/// # Safety
///
/// `socket` is null, or points to a socket address with a type that matches its field `sa_family`.
#[allow(unsafe_code, reason = "the family of a C socket address decides its type")]
#[allow(clippy::cast_ptr_alignment, reason = "read unaligned")]
unsafe fn address(socket: *const libc::sockaddr) -> Option<IpAddr> {
    if socket.is_null() {
        return None;
    }
    // SAFETY: every socket address begins with its family.
    let family = unsafe { ptr::addr_of!((*socket).sa_family).read_unaligned() };
    match libc::c_int::from(family) {
        libc::AF_INET => {
            // SAFETY: the family is `AF_INET`, whose addresses have this type.
            let socket = unsafe { socket.cast::<libc::sockaddr_in>().read_unaligned() };
            Some(Ipv4Addr::from(socket.sin_addr.s_addr.to_ne_bytes()).into())
        }
        libc::AF_INET6 => {
            // SAFETY: the family is `AF_INET6`, whose addresses have this type.
            let socket = unsafe { socket.cast::<libc::sockaddr_in6>().read_unaligned() };
            Some(Ipv6Addr::from(socket.sin6_addr.s6_addr).into())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_interface_is_there_with_its_address() {
        let listed = addresses().unwrap();
        let expected = ("lo".to_owned(), IpAddr::from(Ipv4Addr::LOCALHOST));
        assert!(listed.contains(&expected), "{listed:?}");
    }
}
