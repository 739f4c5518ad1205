//! Go's text/template, as far as it makes names of one process each.

mod eval;
mod functions;
mod lex;
mod members;
mod parse;
mod printf;
mod time;
mod value;

use std::collections::BTreeMap;

use self::{parse::Node, time::Time, value::Data};
use super::subject::{Subject, Wants};

/// A template, taken apart.
#[derive(Clone, Debug, PartialEq)]
pub struct Template(Vec<Node>);

impl Template {
    /// Takes a template apart. The error says what of it is not understood.
    pub fn parse(text: &str) -> Result<Self, String> {
        parse::parse(text, functions::is_function).map(Self)
    }

    /// What has to be known of a process to name it.
    pub fn wants(&self) -> Wants {
        let any = |fields: &[&str]| fields.iter().any(|field| parse::refers_to(&self.0, field));
        Wants {
            cmdline: any(&["ExeBase", "ExeFull"]),
            username: any(&["Username"]),
            cgroups: any(&["Cgroups"]),
        }
    }

    /// The name of this process.
    pub fn render(&self, subject: &Subject<'_>, matches: &BTreeMap<String, String>) -> String {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let data = Data {
            cgroups: subject.cgroups.to_vec(),
            comm: text(subject.comm),
            exe_base: text(subject.exe_base()),
            exe_full: text(subject.exe()),
            username: subject.username.into(),
            pid: subject.pid.into(),
            start_time: Time {
                unix_ns: subject.start_unix_ns,
            },
            matches: matches.clone(),
        };
        eval::render(&self.0, data)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn render(template: &str) -> Result<String, String> {
        let subject = Subject {
            pid: 17,
            comm: b"postgres",
            cmdline: b"/usr/lib/postgres/bin/postgres\0-D\0/data\0",
            username: "pg",
            cgroups: &["/system.slice/pg".into(), "/user".into()],
            start_unix_ns: 1_709_208_000_250_000_000,
        };
        let matches = [("Cfg".to_owned(), "a.yml".to_owned())].into();
        Ok(Template::parse(template)?.render(&subject, &matches))
    }

    /// What process-exporter 0.8.7 makes of each.
    const NAMES: &[(&str, &str)] = &[
        ("{{.Comm}}", "postgres"),
        ("plain", "plain"),
        ("", ""),
        ("{{ .ExeBase }}:{{.PID}}", "postgres:17"),
        ("{{.ExeFull}}", "/usr/lib/postgres/bin/postgres"),
        ("{{.Username}}/{{.Matches.Cfg}}", "pg/a.yml"),
        ("{{.Matches.None}}", "<no value>"),
        ("{{index .Matches \"None\"}}", ""),
        ("{{index .Matches \"Cfg\"}}", "a.yml"),
        ("{{.Matches}}", "map[Cfg:a.yml]"),
        ("{{.Cgroups}}", "[/system.slice/pg /user]"),
        ("{{index .Cgroups 1}}", "/user"),
        // An error ends the name.
        ("a{{index .Cgroups 2}}b", "a"),
        ("{{.StartTime}}", "2024-02-29 12:00:00.25 +0000 UTC"),
        ("{{.StartTime.Unix}}", "1709208000"),
        ("{{.StartTime.Year}}{{.StartTime.Month}}", "2024February"),
        ("{{.StartTime.Format \"2006-01-02\"}}", "2024-02-29"),
        ("a {{- .PID -}} b", "a17b"),
        ("{{/* nothing */}}x", "x"),
        ("{{printf \"%s-%d\" .Comm .PID}}", "postgres-17"),
        (
            "{{printf \"%5d|%-5d|%05d|%x\" .PID .PID .PID .PID}}",
            "   17|17   |00017|11",
        ),
        (
            "{{printf \"%q %v %.3s\" .Comm .Cgroups .Comm}}",
            "\"postgres\" [/system.slice/pg /user] pos",
        ),
        ("{{printf \"%d\" .Comm}}", "%!d(string=postgres)"),
        ("{{printf \"%s\"}}", "%!s(MISSING)"),
        ("{{printf \"x\" 1}}", "x%!(EXTRA int=1)"),
        ("{{.Comm | printf \"%q\"}}", "\"postgres\""),
        ("{{.PID | printf \"%s-%d\" .Comm}}", "postgres-17"),
        ("{{if .Matches.Cfg}}c{{else}}n{{end}}", "c"),
        (
            "{{if .Matches.None}}c{{else if eq .PID 17}}pid{{else}}n{{end}}",
            "pid",
        ),
        (
            "{{if and (eq .Comm \"postgres\") (gt .PID 10)}}big{{end}}",
            "big",
        ),
        ("{{if or .Matches.None (not .Comm)}}x{{else}}y{{end}}", "y"),
        ("{{if eq .Matches.None \"\"}}e{{else}}n{{end}}", "n"),
        ("{{if eq .Comm \"a\" \"postgres\"}}one{{end}}", "one"),
        ("{{with index .Matches \"Cfg\"}}<{{.}}>{{end}}", "<a.yml>"),
        (
            "{{with .Matches.None}}x{{else}}{{.Comm}}{{end}}",
            "postgres",
        ),
        (
            "{{range $i, $g := .Cgroups}}{{if $i}},{{end}}{{$g}}{{end}}",
            "/system.slice/pg,/user",
        ),
        (
            "{{range .Cgroups}}{{if eq . \"/user\"}}{{break}}{{end}}{{.}}{{$.PID}}{{end}}",
            "/system.slice/pg17",
        ),
        (
            "{{range $k, $v := .Matches}}{{$k}}={{$v}}{{end}}",
            "Cfg=a.yml",
        ),
        ("{{$x := .Comm}}{{if true}}{{$x = \"b\"}}{{end}}{{$x}}", "b"),
        ("{{$x := .PID}}{{$x}}", "17"),
        ("{{slice .Comm 0 4}}{{slice .Comm 4}}", "postgres"),
        ("{{len .Comm}} {{len .Cgroups}}", "8 2"),
        ("{{print .PID 1 \"a\" .PID}}", "17 1a17"),
        (
            "{{html \"<a>\"}}{{urlquery \"a b/\"}}{{js \"'\"}}",
            "&lt;a&gt;a+b%2F\\'",
        ),
        ("{{(index .Cgroups 0) | len}}", "16"),
        (
            "{{\"a\\tb\\u00e9\" | printf \"%q\"}}{{`raw\\n`}}",
            "\"a\\tbé\"raw\\n",
        ),
        (
            "{{1.5}} {{0x10}} {{'a'}} {{1e21}} {{true}}",
            "1.5 16 97 1e+21 true",
        ),
    ];

    #[test]
    fn names_are_what_go_makes_of_them() {
        for (template, name) in NAMES {
            assert_eq!(render(template).as_deref(), Ok(*name), "{template}");
        }
    }

    #[test]
    fn what_is_not_understood_is_named() {
        for (template, reason) in [
            ("{{.Comm", "without a }}"),
            ("{{.Nothing}}", "{{.Nothing}}; there are .Cgroups"),
            ("{{$.Nothing}}", "{{.Nothing}}"),
            ("{{if .Comm}}x", "without an {{end}}"),
            ("{{end}}", "ends nothing"),
            ("{{upper .Comm}}", "upper, which is no function"),
            ("{{$x}}", "$x, which is not declared"),
            ("{{define \"x\"}}{{end}}", "define"),
            ("{{}}", "without a value"),
            ("{{\"a}}", "without another"),
            ("{{.Comm | 3}}", "no function"),
            ("{{index .Cgroups x}}", "x, which is no function"),
            ("{{break}}", "outside of range"),
        ] {
            let error = render(template).expect_err(template);
            assert!(error.contains(reason), "{template}: {error}");
        }
    }

    #[test]
    fn what_must_be_read_is_known_before() {
        let wants = |text: &str| Template::parse(text).unwrap().wants();
        assert!(wants("{{if .Username}}x{{end}}").username);
        assert!(wants("{{printf \"%s\" (index .Cgroups 0)}}").cgroups);
        assert!(wants("{{$.ExeBase}}").cmdline);
        assert!(!wants("{{.Comm}}{{.PID}}").cmdline);
    }
}
