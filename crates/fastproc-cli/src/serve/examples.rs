//! The end of the long help: examples.

pub const EXAMPLES: &str = "\
Examples:
  fastproc serve
      Serve at 127.0.0.1:9256, with a group for each name
  fastproc serve --listen=:9256 --config=/etc/process-exporter/all.yaml
      Replace process-exporter: listen at every address, with its rules
  fastproc serve --max-groups=100 --rank=cpu
      Serve the 100 groups that use most CPU time; \"other\" has the rest
  fastproc serve --gather-smaps --costly-share=0.02
      Also serve proportional memory; limit costly values to 2% of a CPU
  fastproc serve --cgroups
      Also serve what containers and systemd units use
  fastproc serve --source=procfs --user=metrics
      Read /proc instead of using BPF, and run as the user metrics
  fastproc serve --no-metrics --socket
      Serve snapshots to fastproc and its libraries, and no metrics

Groups:
  The file for --config has rules. The first rule that matches a process names its group.
    process_names:
      - name: \"{{.Comm}}:{{.Matches.Port}}\"
        comm: [postgres, nginx]
        cmdline: ['-p\\s+(?P<Port>\\d+)']
      - name: \"{{.Comm}}\"
        cmdline: ['.+']

TLS and passwords:
  Make a certificate, or use one that you have:
    openssl req -x509 -newkey rsa:4096 -nodes -days 365 \\
        -keyout fastproc.key -out fastproc.pem \\
        -subj /CN=$(hostname) -addext subjectAltName=DNS:$(hostname)
  Make a password's hash with htpasswd -nB USER, and name all in a file for --web.config.file:
    tls_server_config:
      cert_file: fastproc.pem
      key_file: fastproc.key
    basic_auth_users:
      prometheus: $2y$10$…
  One password is checked at a time, for an address chosen by chance among those that wait; an IPv6
  network of 64 bits counts as one. At most 256 wait, 4 of one address; others get status 429. The
  last 4096 addresses that showed a wrong password, and no right one since, come after all others.
  More addresses than that can keep new clients out: let a firewall choose who connects.
  After systemctl reload (SIGHUP) it uses the new contents of these files, unless one is wrong. These
  files, and that of --config, must be regular files of at most 16 MiB each.

In Prometheus:
  scrape_configs:
    - job_name: fastproc
      scheme: https
      tls_config: {ca_file: fastproc.pem}
      basic_auth: {username: prometheus, password_file: fastproc.pw}
      static_configs: [{targets: ['HOST:9256']}]

Exit status:
  0 if SIGTERM or SIGINT ended it; 2 if it could not run, and standard error says why.";

#[cfg(test)]
mod tests {
    use clap::{Args as _, Command};

    #[test]
    fn examples_have_only_flags_that_there_are() {
        let lines = super::EXAMPLES.lines().map(str::trim_start);
        let lines: Vec<_> = lines
            .filter(|line| line.starts_with("fastproc serve"))
            .collect();
        assert!(lines.len() >= 4, "{lines:?}");
        for line in lines {
            let command = crate::serve::Args::augment_args(Command::new("serve"));
            let parsed = command.try_get_matches_from(line.split_whitespace().skip(1));
            assert!(parsed.is_ok(), "{line}: {parsed:?}");
        }
    }
}
