//! The options that `fastproc serve` passes to this program.

use std::{
    ffi::OsString,
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::PathBuf,
    time::Duration,
};

use fastproc_metrics::link;

use crate::collected::Failure;

/// The options.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The user to become, if this is root and the default user is not wanted.
    pub user: Option<String>,
    /// The file by which processes are grouped. Messages name it; the other process opens it.
    pub groups: Option<PathBuf>,
    /// The web configuration, likewise.
    pub web: Option<PathBuf>,
    /// The path of the metrics.
    pub telemetry_path: String,
    /// Whether a request may trigger a reload.
    pub enable_lifecycle: bool,
    /// Scrapes closer together than this share a snapshot.
    pub min_interval: Duration,
    /// Connections at a time.
    pub max_connections: usize,
}

impl Options {
    /// Parses these arguments; `None` if `fastproc serve` has not started this program.
    pub fn parse(arguments: &[OsString]) -> Option<Result<Self, Failure>> {
        let (first, rest) = arguments.split_first()?;
        let version = first.to_str()?.strip_prefix("--collected=")?;
        Some(if version == link::VERSION {
            Self::named(rest)
        } else {
            Err(
                "fastproc and fastproc-exporter are of different versions: install both anew"
                    .into(),
            )
        })
    }

    fn named(arguments: &[OsString]) -> Result<Self, Failure> {
        let mut options = Self::default();
        for argument in arguments {
            let bytes = argument.as_bytes();
            let equals = bytes.iter().position(|&byte| byte == b'=');
            let (name, value) = bytes.split_at(equals.unwrap_or(bytes.len()));
            let value = value.get(1..).unwrap_or_default();
            let text = || String::from_utf8(value.to_vec());
            let path = || Some(OsString::from_vec(value.to_vec()).into());
            match name {
                b"--user" => options.user = Some(text()?),
                b"--config" => options.groups = path(),
                b"--web.config.file" => options.web = path(),
                b"--web.telemetry-path" => options.telemetry_path = text()?,
                b"--web.enable-lifecycle" => options.enable_lifecycle = true,
                b"--min-interval-ns" => {
                    options.min_interval = Duration::from_nanos(text()?.parse()?);
                }
                b"--max-connections" => options.max_connections = text()?.parse()?,
                _ => return Err(format!("{} is not known here", argument.display()).into()),
            }
        }
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLLECTED: &str = "--collected=5";

    #[test]
    fn only_fastproc_serve_starts_it_so() {
        let parse = |arguments: &[&str]| {
            let arguments: Vec<OsString> = arguments.iter().map(OsString::from).collect();
            Options::parse(&arguments)
        };
        assert!(parse(&[]).is_none());
        assert!(parse(&["--listen=:1", COLLECTED]).is_none());
        assert!(parse(&["--collected=0"]).unwrap().is_err());
        assert!(parse(&[COLLECTED, "--x"]).unwrap().is_err());
        let options = parse(&[
            COLLECTED,
            "--config=/a=b",
            "--min-interval-ns=1000000000",
            "--max-connections=7",
        ]);
        let options = options.unwrap().unwrap();
        assert_eq!(options.groups, Some("/a=b".into()));
        assert_eq!(options.min_interval, Duration::from_secs(1));
        assert_eq!(options.max_connections, 7);
    }
}
