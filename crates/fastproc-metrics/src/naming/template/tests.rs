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
    let matches = [
        (String::new(), "-c a.yml".to_owned()),
        ("Cfg".to_owned(), "a.yml".to_owned()),
    ];
    let template = Template::parse(template)?;
    let name = template.render(&subject, &matches.into());
    name.map_err(|error| error.to_string())
}

#[test]
fn names_that_differ_in_bytes_that_are_not_utf_8_stay_different() {
    let template = Template::parse("{{.Comm}} {{.ExeBase}} {{.ExeFull}}").expect("a template");
    for (name, expected) in [
        (&b"w\xd0"[..], r"w\xd0 w\xd0 w\xd0"),
        (b"w\xd1", r"w\xd1 w\xd1 w\xd1"),
    ] {
        let subject = Subject {
            comm: name,
            cmdline: name,
            ..Subject::default()
        };
        let shown = template.render(&subject, &[].into()).expect("a name");
        assert_eq!(shown, expected);
        // Expressions match the line, and may become names.
        assert_eq!(subject.line(), expected.split(' ').next().expect("a word"));
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
    ("{{index .Matches `Cfg`}}", "a.yml"),
    ("{{.Matches}}", "map[:-c a.yml Cfg:a.yml]"),
    ("{{.Cgroups}}", "[/system.slice/pg /user]"),
    ("{{index .Cgroups 1}}", "/user"),
    // An error ends the name.
    ("a{{index .Cgroups 2}}b", "a"),
    ("a{{index .Cgroups -1}}b", "a"),
    ("a{{if eq .PID \"17\"}}b{{end}}c", "a"),
    ("{{.StartTime}}", "2024-02-29 12:00:00.25 +0000 UTC"),
    ("{{.StartTime.Unix}}", "1709208000"),
    ("a {{- .PID -}} b", "a17b"),
    ("a {{- .PID }} b", "a17 b"),
    ("a {{ not .PID -}} b", "a falseb"),
    ("{{if .PID -}} a {{- else -}} b {{- end}}", "a"),
    ("{{/* nothing */}}x", "x"),
    ("{{if .Matches.Cfg}}c{{else}}n{{end}}", "c"),
    (
        "{{if .Matches.None}}c{{else if eq .PID 17}}pid{{else}}n{{end}}",
        "pid",
    ),
    (
        "{{if and (eq .Comm \"postgres\") (ne .PID 10)}}big{{end}}",
        "big",
    ),
    ("{{if or .Matches.None (not .Comm)}}x{{else}}y{{end}}", "y"),
    ("{{or .Matches.None .Comm}}", "postgres"),
    ("{{if eq .Matches.None \"\"}}e{{else}}n{{end}}", "n"),
    ("{{if eq .Comm \"a\" \"postgres\"}}one{{end}}", "one"),
];

#[test]
fn names_are_what_go_makes_of_them() {
    for (template, name) in NAMES {
        assert_eq!(render(template).as_deref(), Ok(*name), "{template}");
    }
}

#[test]
fn errors_of_templates_name_what_is_unknown() {
    for (template, reason) in [
        ("{{.Comm", "without a }}"),
        ("{{.Nothing}}", "{{.Nothing}}; there are .Cgroups"),
        ("{{.Comm.Len}}", "{{.Comm.Len}}; there are .Cgroups"),
        ("{{.StartTime.Year}}", ".Matches.NAME and .StartTime.Unix"),
        ("{{if .Comm}}x", "an {{if}} without an {{end}}"),
        (
            "{{if .Comm}}x{{else}}y{{else}}z{{end}}",
            "{{else}} without an {{end}}",
        ),
        ("{{end}}", "without an {{if}}"),
        (
            "{{printf \"%s\" .Comm}}",
            "printf, which is not supported; if, else",
        ),
        (
            "{{range .Cgroups}}{{.}}{{end}}",
            "range, which is not supported",
        ),
        ("{{$x}}", "\"$x}}\", which is not supported"),
        ("{{.}}", "{{.}}; there are"),
        ("{{}}", "\"}}\", which is not supported"),
        ("{{\"a}}", "which is not supported"),
        ("{{eq .Comm \"a\\n\"}}", "has a \\ in a text"),
        ("{{.Comm | 3}}", "\"|\", which is not supported"),
        ("{{index .Cgroups}}", "index with 1 arguments"),
        ("{{(not .Comm}}", "a ( without a )"),
        ("{{/* x}}", "a comment that does not end"),
    ] {
        let error = render(template).expect_err(template);
        assert!(error.contains(reason), "{template}: {error}");
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
}

#[test]
fn a_name_that_is_too_long_is_refused() {
    let template = Template::parse(&"{{.Matches.x}}".repeat(4)).unwrap();
    let name = |length| {
        let matches = [("x".to_owned(), "y".repeat(length))].into();
        template.render(&Subject::default(), &matches)
    };
    assert_eq!(name(16 * 1024).unwrap().len(), 64 * 1024);
    let error = name(16 * 1024 + 1).unwrap_err().to_string();
    assert!(error.contains("makes more than 65536 bytes"), "{error}");
}

#[test]
fn the_rules_tell_which_texts_they_need() {
    let wants = |text: &str| Template::parse(text).unwrap().wants();
    assert!(wants("{{if .Username}}x{{end}}").username);
    assert!(wants("{{if .PID}}{{else}}{{index .Cgroups 0}}{{end}}").cgroups);
    assert!(wants("{{eq .Comm (or .ExeBase .PID)}}").cmdline);
    assert!(!wants("{{.Comm}}{{.PID}}{{.Matches.ExeBase}}").cmdline);
}

#[test]
fn containers_and_pods_are_named() {
    for (template, name) in [
        ("{{.PodName}}/{{.ContainerName}}", "db-0/db"),
        ("{{.ContainerID}}", "3f5c"),
        ("{{if .Namespace}}{{.Namespace}}{{else}}none{{end}}", "none"),
    ] {
        assert_eq!(render(template).as_deref(), Ok(name), "{template}");
    }
    let wants = |template| Template::parse(template).expect("it is right").wants();
    assert!(wants("{{.PodUID}}").container);
    assert!(!wants("{{.PodUID}}").container_names);
    let names = wants("{{if .PodName}}x{{end}}");
    assert!(names.container && names.container_names);
}
