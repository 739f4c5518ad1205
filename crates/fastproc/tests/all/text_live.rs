//! Texts of this process, rendered where something of its record is missing or hidden. Needs no privileges.

use std::fs;

use fastproc::{
    Fields, Host, Process,
    access::Access,
    record::Record,
    text::{RenderError, Text, Units, stat, statm, status},
};

/// A record with the groups that the texts show, for parsing any of the files.
fn empty_record() -> Record {
    let mut record = Record::default();
    record.identity.groups = Fields::THREE_FILES.bits();
    record
}

#[test]
fn without_the_bit_huge_pages_come_from_the_kernel() {
    let host = Host::read().expect("the host can be asked");
    let format = status::Format::read(&host).expect("the format can be learned");
    if !format.kernel_lines().any(|label| label == "THP_enabled") {
        fastproc_testbed::gate::skipped("this kernel has no transparent huge pages");
        return;
    }
    let own = fs::read("/proc/self/status").expect("/proc is mounted");
    let mut record = empty_record();
    let mut pool = Vec::new();
    status::parse(&own, &format, &mut record, &mut pool).expect("the kernel's text parses");
    let mut renderer = status::Renderer::new(format);
    let process = Process::new(&record, &pool);
    let mut text = Text::default();
    let refused = text
        .render(|out| renderer.render(process, None, out))
        .map(<[u8]>::len);
    assert!(
        matches!(refused, Err(RenderError::KernelText { .. })),
        "{refused:?}"
    );
    assert_eq!(
        text.render(|out| renderer.render(process, Some(&own), out)),
        Ok(own.as_slice())
    );
}

#[test]
fn a_reader_without_access_sees_what_the_kernel_would_show() {
    let units = Units::from(&Host::read().expect("the host can be asked"));
    let own = fs::read_to_string("/proc/self/stat").expect("/proc is mounted");
    let mut record = empty_record();
    stat::parse(own.as_bytes(), &units, &mut record).expect("the kernel's text parses");
    record.identity.exit_code = 7;
    let mut text = Text::default();
    let process = Process::new(&record, &[]);
    let masked = text
        .render(|out| stat::render(process, &units, Access::Denied, out))
        .expect("it renders")
        .to_vec();
    let fields = |text: &str| -> Vec<String> {
        text[text.rfind(')').expect("a name")..]
            .split_ascii_whitespace()
            .map(Into::into)
            .collect()
    };
    let (shown, masked_text) = (
        fields(&own),
        fields(std::str::from_utf8(&masked).expect("it is ASCII here")),
    );
    // Field n of proc(5) is at n - 2 here, because the pid is before the name.
    for (index, (shown, masked)) in shown.iter().zip(&masked_text).enumerate() {
        match index + 2 {
            26 | 27 => assert_eq!(masked, "1"),
            28..=30 | 35 | 45..=52 => assert_eq!(masked, "0"),
            _ => assert_eq!(masked, shown),
        }
    }
    // A masked record is recognised, and stays masked for all readers.
    let mut again = empty_record();
    stat::parse(&masked, &units, &mut again).expect("it parses");
    assert_eq!(again.identity.masked, 1);
    let process = Process::new(&again, &[]);
    assert!(process.layout().is_none() && process.exit_code().is_none());
    assert_eq!(
        text.render(|out| stat::render(process, &units, Access::Granted, out)),
        Ok(masked.as_slice())
    );
}

#[test]
fn a_record_without_the_groups_is_refused() {
    let units = Units::from(&Host::read().expect("the host can be asked"));
    let record = Record::default();
    let process = Process::new(&record, &[]);
    let refused = Text::default()
        .render(|out| statm::render(process, &units, out))
        .map(<[u8]>::len);
    assert_eq!(refused, Err(RenderError::MissingFields(Fields::MEMORY)));
}
