//! Notifies a service manager that the service is ready (`sd_notify(3)`).

use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Notifies the service manager, if one waits. Ignores errors: a manager that got no notification has a time limit.
pub(crate) fn ready() {
    let _ = std::env::var_os("NOTIFY_SOCKET").map_or(Ok(()), |socket| send(&socket, b"READY=1\n"));
}

fn send(socket: &OsStr, message: &[u8]) -> io::Result<()> {
    let addr = match socket.as_bytes() {
        // An abstract socket name, which is not a file.
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name),
        path => SocketAddr::from_pathname(OsStr::from_bytes(path)),
    };
    UnixDatagram::unbound()?.send_to_addr(message, &addr?).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_abstract_names_are_reached() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("socket");
        let name = format!("hikv-notify-{}", std::process::id());
        let listeners = [
            (UnixDatagram::bind(&path).unwrap(), path.into_os_string()),
            (
                UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap(),
                format!("@{name}").into(),
            ),
        ];
        for (listener, socket) in listeners {
            send(&socket, b"READY=1\n").unwrap();
            let mut received = [0; 32];
            let len = listener.recv(&mut received).unwrap();
            assert_eq!(&received[..len], b"READY=1\n");
        }
    }
}
