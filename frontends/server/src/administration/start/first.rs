//! Initial users and settings of a configuration.

use std::io;
use std::path::PathBuf;

use crate::administration::byte_order_mark;
use crate::administration::settings::{self, Settings};
use crate::config::Config;
use acl::{Acl, AclFile};

/// Returns the users of the ACL file of `config`, or of its parameters. The default user always exists, with the
/// password of `config`, if any.
///
/// # Errors
/// An unreadable or invalid file, or users in both places.
pub(crate) fn acl_of(config: &Config) -> io::Result<Acl> {
    let file = config.acl_file.clone().map(|path| AclFile::new(path, byte_order_mark::read_text));
    let users = match &file {
        Some(_) if config.parameters.has_users() => {
            let why = "users are defined in two places: omit --acl-file (aclfile), or the password and the lines 'user' and 'requirepass'";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        Some(file) => file.read()?,
        None => config.parameters.users().clone(),
    };
    let acl = Acl::of(users, file);
    if let Some(password) = &config.password {
        acl.require_password(password.bytes());
    }
    Ok(acl)
}

/// Returns the settings of `config`, including parameters that have their own field.
pub(crate) fn settings_of(config: &Config) -> Settings {
    let mut values: Vec<(usize, String)> =
        config.parameters.values().map(|(index, value)| (index, value.to_owned())).collect();
    let number = |name: &str| settings::by_name(name.as_bytes()).expect("a known parameter");
    values.extend(shown(config).into_iter().map(|(name, value)| (number(name), value)));
    Settings::of(values, config.log.clone())
}

/// Returns the parameters that have a field in `config`.
fn shown(config: &Config) -> Vec<(&'static str, String)> {
    let yes_or_no = |is_so| if is_so { "yes" } else { "no" }.to_owned();
    let path = |path: Option<&PathBuf>| path.map(|path| path.display().to_string()).unwrap_or_default();
    let mut shown = vec![
        ("aclfile", path(config.acl_file.as_ref())),
        ("backup-dir", path(config.backup_dir.as_ref())),
        ("http", config.http.clone().unwrap_or_default()),
        ("http-hosts", config.http_hosts.join(" ")),
        ("ordered", yes_or_no(config.ordered)),
        ("http-tls", yes_or_no(config.http_tls)),
        ("io-threads", config.threads.to_string()),
        ("split", config.split.to_string()),
        ("maxclients", config.max_clients.to_string()),
        ("proto-max-bulk-len", config.bulk_bytes_max.to_string()),
        ("unixsocket", path(config.unix.as_ref().map(|(path, _)| path))),
        ("unixsocketperm", format!("{:o}", config.unix.as_ref().and_then(|(_, mode)| *mode).unwrap_or(0))),
        ("protected-mode", yes_or_no(config.protected)),
    ];
    let (hosts, port) = hosts_and_port(&config.addrs);
    if let Some(tls) = &config.tls {
        let (tls_hosts, tls_port) = hosts_and_port(&tls.addrs);
        shown.extend([
            ("tls-bind", if tls_hosts == hosts { "".into() } else { tls_hosts }),
            ("tls-port", tls_port),
            ("tls-auth-clients", tls.files.client_certificate.name().to_owned()),
            ("tls-ca-cert-file", path(tls.files.client_ca.as_ref())),
            ("tls-cert-file", path(Some(&tls.files.certificate))),
            ("tls-key-file", path(Some(&tls.files.key))),
        ]);
    }
    shown.extend([("bind", hosts), ("port", port)]);
    shown.extend(config.log.as_ref().map(|log| ("loglevel", log.level().name().to_owned())));
    shown
}

/// Returns the hosts of the addresses in the form of `bind`, and their common port; port 0 if there are none.
fn hosts_and_port(addrs: &[String]) -> (String, String) {
    let parts = || addrs.iter().filter_map(|addr| addr.rsplit_once(':'));
    let hosts: Vec<String> = parts().map(|(host, _)| host.replace(['[', ']'], "")).collect();
    (hosts.join(" "), parts().next().map_or("0", |(_, port)| port).to_owned())
}
