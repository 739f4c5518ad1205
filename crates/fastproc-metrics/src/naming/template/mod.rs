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
use super::subject::{OF_CGROUP, OF_RUNTIME, Subject, Wants};

/// A template, taken apart.
#[derive(Clone, Debug, PartialEq)]
pub struct Template {
    text: String,
    nodes: Vec<Node>,
}

/// A template asks for more than the name of a group may take.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the template {template:?} {reason}, so it names no process")]
pub struct NameError {
    template: String,
    reason: String,
}

impl Template {
    /// Takes a template apart. The error says what of it is not understood.
    pub fn parse(text: &str) -> Result<Self, String> {
        Ok(Self {
            text: text.into(),
            nodes: parse::parse(text, functions::is_function)?,
        })
    }

    /// What has to be known of a process to name it.
    pub fn wants(&self) -> Wants {
        let any = |fields: &[&str]| {
            fields
                .iter()
                .any(|field| parse::refers_to(&self.nodes, field))
        };
        Wants {
            cmdline: any(&["ExeBase", "ExeFull"]),
            username: any(&["Username"]),
            cgroups: any(&["Cgroups"]),
            container: any(&OF_CGROUP) || any(&OF_RUNTIME),
            container_names: any(&OF_RUNTIME),
        }
    }

    /// The name of this process.
    pub fn render(
        &self,
        subject: &Subject<'_>,
        matches: &BTreeMap<String, String>,
    ) -> Result<String, NameError> {
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
            container: subject.container.cloned().unwrap_or_default(),
        };
        eval::render(&self.nodes, data).map_err(|reason| NameError {
            template: self.text.clone(),
            reason,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::naming::Container;

    fn render(template: &str) -> Result<String, String> {
        let container = Container {
            id: "3f5c".into(),
            name: "db".into(),
            pod: "db-0".into(),
            ..Container::default()
        };
        let subject = Subject {
            pid: 17,
            comm: b"postgres",
            cmdline: b"/usr/lib/postgres/bin/postgres\0-D\0/data\0",
            username: "pg",
            cgroups: &["/system.slice/pg".into(), "/user".into()],
            container: Some(&container),
            start_unix_ns: 1_709_208_000_250_000_000,
        };
        let matches = [("Cfg".to_owned(), "a.yml".to_owned())].into();
        let template = Template::parse(template)?;
        let name = template.render(&subject, &matches);
        name.map_err(|error| error.to_string())
    }

    #[test]
    fn containers_and_pods_are_named() {
        for (template, name) in [
            ("{{.PodName}}/{{.ContainerName}}", "db-0/db"),
            ("{{slice .ContainerID 0 2}}", "3f"),
            ("{{if .Namespace}}{{.Namespace}}{{else}}none{{end}}", "none"),
        ] {
            assert_eq!(render(template).as_deref(), Ok(name), "{template}");
        }
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
    fn widths_that_are_arguments_are_as_in_go_and_no_wider_than_a_name() {
        for (template, name) in [
            ("{{printf \"%*d|\" 5 .PID}}", "   17|"),
            ("{{printf \"%*d|\" -5 .PID}}", "17   |"),
            ("{{printf \"%0*d|\" -5 .PID}}", "17   |"),
            ("{{printf \"%.*s|\" 3 .Comm}}", "pos|"),
            ("{{printf \"%.*s|\" -3 .Comm}}", "postgres|"),
        ] {
            assert_eq!(render(template).as_deref(), Ok(name), "{template}");
        }
        for width in ["4000000000", "-4000000000", "0x7fffffffffffffff"] {
            for format in ["%*d", "%0*d", "%.*d", "%*s", "%.*f"] {
                let text = render(&format!("{{{{printf \"{format}\" {width} 1}}}}"));
                assert!(text.unwrap().len() <= 1100, "{format} {width}");
            }
        }
    }

    #[test]
    fn templates_that_are_too_deep_or_too_long_are_refused() {
        let parentheses = |depth| {
            let (open, close) = ("(".repeat(depth), ")".repeat(depth));
            format!("{{{{{open}.Comm{close}}}}}")
        };
        let controls = |depth| "{{if .Comm}}".repeat(depth) + "x" + &"{{end}}".repeat(depth);
        let elses = |depth: usize| {
            "{{if .Matches.None}}".to_owned()
                + &"{{else if .Matches.None}}".repeat(depth - 1)
                + "{{else}}x{{end}}"
        };
        assert_eq!(render(&parentheses(64)).as_deref(), Ok("postgres"));
        for deep in [controls(64), elses(64)] {
            assert_eq!(render(&deep).as_deref(), Ok("x"));
        }
        for text in [parentheses(65), parentheses(4000), controls(65), elses(65)] {
            let error = render(&text).expect_err("it is too deep");
            assert!(error.contains("is too deep: no more than 64"), "{error}");
        }
        assert!(render(&"x".repeat(8192)).is_ok());
        let error = render(&"x".repeat(8193)).expect_err("it is too long");
        assert_eq!(
            error,
            "a template of 8193 bytes is too long: 8192 are allowed"
        );
        // Each is read once, whatever their number.
        let pipes = "{{.Comm".to_owned() + &"|print".repeat(1000) + "}}";
        assert_eq!(render(&pipes).as_deref(), Ok("postgres"));
    }

    #[test]
    fn a_template_that_makes_or_takes_too_much_is_named() {
        let doubles = "{{$x := .Comm}}".to_owned() + &"{{$x = print $x $x}}".repeat(40);
        let error = render(&doubles).expect_err("it makes too much");
        assert!(
            error.starts_with("the template \"{{$x := .Comm}}"),
            "{error}"
        );
        assert!(error.contains("makes more than 65536 bytes"), "{error}");
        let wide = "{{printf \"%1000d\" 1}}".repeat(66);
        let error = render(&wide).expect_err("it makes too much");
        assert!(error.contains("makes more than 65536 bytes"), "{error}");
        assert!(render(&"{{printf \"%1000d\" 1}}".repeat(65)).is_ok());
        let ranges = "{{range $.Cgroups}}".repeat(20) + "x" + &"{{end}}".repeat(20);
        let error = render(&ranges).expect_err("it takes too much");
        assert!(error.contains("takes more than 10000 steps"), "{error}");
    }

    #[test]
    fn what_must_be_read_is_known_before() {
        let wants = |text: &str| Template::parse(text).unwrap().wants();
        assert!(wants("{{if .Username}}x{{end}}").username);
        assert!(wants("{{printf \"%s\" (index .Cgroups 0)}}").cgroups);
        assert!(wants("{{$.ExeBase}}").cmdline);
        assert!(!wants("{{.Comm}}{{.PID}}").cmdline);
        assert!(wants("{{.PodUID}}").container);
        assert!(!wants("{{.PodUID}}").container_names);
        let names = wants("{{with .PodName}}{{.}}{{end}}");
        assert!(names.container && names.container_names);
    }
}
