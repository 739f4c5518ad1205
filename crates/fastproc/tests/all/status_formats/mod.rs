//! The status of kernels that are not running here, from artificial texts in their format.

mod kernels;

use fastproc::{
    Fields, Process,
    record::Record,
    text::{
        RenderError, Text,
        status::{Format, Renderer, SpeculationControl, parse},
    },
};
use proptest::prelude::*;

use kernels::{KERNEL_THREAD, Kernel, LINUX_5_10, LINUX_6_1, LINUX_6_12, OTHER, OWN, Values, text};

fn learn(kernel: Kernel) -> Format {
    let own = text(kernel, OWN);
    let control = SpeculationControl {
        store_bypass: true,
        indirect_branch: true,
    };
    Format::learn(own.as_bytes(), Some(40), control)
        .expect("it can be learned")
        .with_thp_disable_bit(Some(24))
}

/// Renders the values parsed from `text`.
fn again(format: &Format, text: &str, kernel_text: Option<&str>) -> Result<String, RenderError> {
    let mut record = Record::default();
    let mut pool = Vec::new();
    parse(text.as_bytes(), format, &mut record, &mut pool).expect("it parses");
    record.identity.groups = Fields::THREE_FILES.bits();
    let mut renderer = Renderer::new(format.clone());
    let process = Process::new(&record, &pool);
    let mut rendered = Text::default();
    let rendered =
        rendered.render(|out| renderer.render(process, kernel_text.map(str::as_bytes), out))?;
    Ok(String::from_utf8(rendered.to_vec()).expect("it is text"))
}

#[test]
fn older_kernels_are_rendered_from_records_alone() {
    for kernel in [
        LINUX_5_10,
        LINUX_6_1,
        Kernel {
            huge_pages: false,
            ..LINUX_6_1
        },
    ] {
        let format = learn(kernel);
        assert_eq!(format.kernel_lines().count(), 0);
        for values in [OWN, OTHER, KERNEL_THREAD] {
            let text = text(kernel, values);
            assert_eq!(again(&format, &text, None).as_ref(), Ok(&text));
        }
    }
}

#[test]
fn lines_that_no_record_holds_come_from_the_kernel() {
    let format = learn(LINUX_6_12);
    let lines: Vec<&str> = format.kernel_lines().collect();
    assert_eq!(lines, ["x86_Thread_features", "x86_Thread_features_locked"]);
    for values in [OWN, OTHER, KERNEL_THREAD] {
        let text = text(LINUX_6_12, values);
        assert_eq!(again(&format, &text, Some(&text)).as_ref(), Ok(&text));
        let refused = again(&format, &text, None);
        assert_eq!(
            refused,
            Err(RenderError::KernelText {
                label: "x86_Thread_features".into()
            })
        );
    }
}

#[test]
fn features_of_a_thread_are_rendered_where_records_hold_them() {
    let format = learn(LINUX_6_12).with_thread_features(true);
    assert_eq!(format.kernel_lines().count(), 0);
    for (features, bits) in [("", 0), ("shstk ", 1), ("wrss ", 2), ("shstk wrss ", 3)] {
        let text = text(LINUX_6_12, Values { features, ..OTHER });
        let mut record = Record::default();
        parse(text.as_bytes(), &format, &mut record, &mut Vec::new()).expect("it parses");
        assert_eq!(record.credentials.thread_features, bits);
        assert_eq!(record.credentials.thread_features_locked, 0);
        assert_eq!(again(&format, &text, None).as_ref(), Ok(&text));
        let locked = text.replace("_locked:\t", &format!("_locked:\t{features}"));
        assert_eq!(again(&format, &locked, None).as_ref(), Ok(&locked));
    }
}

#[test]
fn a_feature_nobody_knows_is_copied_and_never_left_out() {
    let mut record = Record::default();
    let mut parsed =
        |format: &Format, text: &str| parse(text.as_bytes(), format, &mut record, &mut Vec::new());
    let text = text(
        LINUX_6_12,
        Values {
            features: "shstk lass ",
            ..OTHER
        },
    );
    let copies = learn(LINUX_6_12);
    assert_eq!(parsed(&copies, &text), Ok(()));
    assert_eq!(again(&copies, &text, Some(&text)).as_ref(), Ok(&text));
    let renders = learn(LINUX_6_12).with_thread_features(true);
    let error = parsed(&renders, &text).expect_err("no record holds it");
    assert!(
        text.lines()
            .nth(error.line - 1)
            .is_some_and(|line| line.starts_with("x86_Thread_features:")),
        "{error}"
    );
    // If this process itself has features, the line is rendered for no process, but copied from the kernel's text.
    let learned = Format::learn(text.as_bytes(), Some(40), SpeculationControl::default());
    let learned = learned
        .expect("it can be learned")
        .with_thp_disable_bit(Some(24))
        .with_thread_features(true);
    assert_eq!(
        learned.kernel_lines().collect::<Vec<_>>(),
        ["x86_Thread_features"]
    );
}

#[test]
fn a_label_nobody_knows_is_copied_where_it_stands() {
    let kernel = Kernel {
        unknown: true,
        ..LINUX_6_1
    };
    let format = learn(kernel);
    assert_eq!(format.kernel_lines().collect::<Vec<_>>(), ["Horizon"]);
    for values in [OWN, OTHER, KERNEL_THREAD] {
        let text = text(kernel, values);
        let other_value = text.replace("Horizon:\tevent", "Horizon:\tflat");
        assert_eq!(
            again(&format, &text, Some(&other_value)).as_ref(),
            Ok(&other_value)
        );
        // A process for which the kernel does not print it.
        let without = text.replace("Horizon:\tevent\n", "");
        assert_eq!(
            again(&format, &without, Some(&without)).as_ref(),
            Ok(&without)
        );
    }
}

#[test]
fn a_line_in_another_form_is_copied_too() {
    let form = |text: String| {
        text.replace("Threads:\t12\n", "Threads:\t12 or so\n")
            .replace("Umask:\t0022", "Umask:\t022")
    };
    let own = form(text(LINUX_6_1, OWN));
    let format = Format::learn(own.as_bytes(), Some(40), SpeculationControl::default())
        .expect("it can be learned");
    let format = format.with_thp_disable_bit(Some(24));
    assert_eq!(
        format.kernel_lines().collect::<Vec<_>>(),
        ["Umask", "Threads"]
    );
    assert_eq!(again(&format, &own, Some(&own)).as_ref(), Ok(&own));
}

#[test]
fn lines_in_another_order_keep_it() {
    let swap = |text: String| {
        let line = "Mems_allowed:\t00000000,00000003\n";
        let text = text.replace(line, "");
        let peak = "VmPeak:\t123456789012 kB\n";
        let text = text
            .replace(peak, "")
            .replace("VmLck:", &format!("{peak}VmLck:"));
        text.replace("Threads:", &format!("{line}Threads:"))
    };
    let own = swap(text(LINUX_6_1, OWN));
    let format = Format::learn(own.as_bytes(), Some(40), SpeculationControl::default())
        .expect("it can be learned");
    let format = format.with_thp_disable_bit(Some(24));
    assert_eq!(format.kernel_lines().count(), 0);
    for values in [OWN, KERNEL_THREAD] {
        let text = swap(text(LINUX_6_1, values));
        assert_eq!(again(&format, &text, None).as_ref(), Ok(&text));
    }
    // A text in another order still parses: the order is an expectation, not a condition.
    assert_eq!(
        again(&format, &text(LINUX_6_1, OWN), None).as_ref(),
        Ok(&own)
    );
}

#[test]
fn cpus_that_could_never_be_are_not_shown() {
    let own = text(LINUX_6_1, OWN);
    let parsed = |format: &Format| {
        let mut record = Record::default();
        let mut pool = Vec::new();
        parse(own.as_bytes(), format, &mut record, &mut pool).expect("it parses");
        record.identity.groups = Fields::THREE_FILES.bits();
        // The kernel's value in the mask of a process that may run on all CPUs.
        record.scheduling_details.cpus_allowed = u64::MAX;
        record
    };
    let format = learn(LINUX_6_1);
    let record = parsed(&format);
    let mut renderer = Renderer::new(format);
    let mut rendered = Text::default();
    let process = Process::new(&record, &[]);
    let refused = rendered
        .render(|out| renderer.render(process, None, out))
        .map(String::from_utf8_lossy);
    let refused = refused.expect("it renders");
    assert!(
        refused.contains("Cpus_allowed:\tff,ffffffff\nCpus_allowed_list:\t0-39\n"),
        "{refused}"
    );
    // If the number of CPUs disagrees with the kernel's text, the text is right.
    let control = SpeculationControl {
        store_bypass: true,
        indirect_branch: true,
    };
    for cpus in [None, Some(2), Some(64)] {
        let format = Format::learn(own.as_bytes(), cpus, control).expect("it can be learned");
        let lines: Vec<&str> = format.kernel_lines().collect();
        assert_eq!(lines, ["THP_enabled", "Cpus_allowed", "Cpus_allowed_list"]);
    }
}

#[test]
fn malformed_status_texts_are_refused() {
    for own in ["Name:\tcat", "no colon\n", ":\n", "\n"] {
        assert!(
            Format::learn(own.as_bytes(), None, SpeculationControl::default()).is_err(),
            "{own:?}"
        );
    }
}

#[test]
fn a_text_that_was_cut_is_refused() {
    let format = learn(LINUX_6_12);
    for values in [OWN, KERNEL_THREAD] {
        let text = text(LINUX_6_12, values);
        // The last two lines are unknown, so a text may lack them.
        let known = text.find("x86_Thread").expect("the text has the line");
        for end in 0..known {
            let mut record = Record::default();
            assert!(
                parse(
                    &text.as_bytes()[..end],
                    &format,
                    &mut record,
                    &mut Vec::new()
                )
                .is_err(),
                "{}",
                &text[..end]
            );
        }
    }
}

/// A text of this form with other values.
fn varied(form: &str, name: &[u8], numbers: &[u64], lists: [usize; 2]) -> Vec<u8> {
    const STATES: [&str; 9] = [
        "R (running)",
        "S (sleeping)",
        "D (disk sleep)",
        "T (stopped)",
        "t (tracing stop)",
        "X (dead)",
        "Z (zombie)",
        "P (parked)",
        "I (idle)",
    ];
    let mut numbers = numbers.iter().copied().cycle();
    let mut next = |bits: u32| numbers.next().unwrap_or(0) >> (64 - bits);
    // Ids of process groups are signed in the text.
    let ids = [(); 4].map(|()| next(31));
    let mut resident_kib = 0;
    let mut text = Vec::new();
    let [groups, levels] = lists;
    for line in form.lines() {
        let (label, value) = line.split_once(':').expect("a label");
        let mut nested = |own: u64| {
            let inner = (0..levels).map(|_| format!("\t{}", next(32)));
            format!("{own}{}", inner.collect::<String>())
        };
        let value = match label {
            "Name" => {
                let escaped = name.iter().flat_map(|&byte| match byte {
                    b'\n' => b"\\n".to_vec(),
                    b'\\' => b"\\\\".to_vec(),
                    byte => vec![byte],
                });
                text.extend(b"Name:\t".iter().copied().chain(escaped).chain(*b"\n"));
                continue;
            }
            "Umask" if ids[0] % 2 == 0 => continue,
            "Umask" => format!("{:04o}", next(9)),
            "State" => STATES[next(32) as usize % STATES.len()].into(),
            "Tgid" | "Pid" => ids[0].to_string(),
            "NStgid" | "NSpid" => nested(ids[0]),
            "NSpgid" => nested(ids[1]),
            "NSsid" => nested(ids[2]),
            "Groups" => {
                let ids: Vec<_> = (0..groups).map(|_| next(32).to_string()).collect();
                ids.join(" ") + " "
            }
            "Uid" | "Gid" => [(); 4].map(|()| next(32).to_string()).join("\t"),
            "SigQ" => format!("{}/{}", next(32), next(64)),
            "Seccomp" => format!("{}", 2 * (ids[3] % 2)),
            "Seccomp_filters" | "NoNewPrivs" | "CoreDumping" | "THP_enabled" | "Kthread" => {
                format!("{}", next(1))
            }
            "VmRSS" => "RESIDENT".into(),
            "untag_mask" => format!("0x{:x}", next(64)),
            _ if value.ends_with(" kB") => {
                let kib = next(46);
                resident_kib += if label.starts_with("Rss") { kib } else { 0 };
                format!("{kib:8} kB")
            }
            _ if value.len() == 17 => format!("{:016x}", next(64)),
            "Cpus_allowed"
            | "Cpus_allowed_list"
            | "Mems_allowed"
            | "Mems_allowed_list"
            | "Speculation_Store_Bypass"
            | "SpeculationIndirectBranch" => value[1..].into(),
            _ => next(32).to_string(),
        };
        text.extend(format!("{label}:\t{value}\n").bytes());
    }
    let resident = format!("{resident_kib:8} kB");
    let place = text.windows(8).position(|part| part == b"RESIDENT");
    place.map(|at| text.splice(at..at + 8, resident.bytes()));
    text
}

proptest! {
    #[test]
    fn values_of_status_survive_parsing_and_rendering(
        name in prop::collection::vec(1_u8.., 0..=63),
        numbers: [u64; 31],
        groups in 0..9_usize,
        levels in 0..4_usize,
        values in prop::sample::select(vec![OWN, OTHER, KERNEL_THREAD]),
    ) {
        let kernel = Kernel { kthread: true, untag_mask: true, ..LINUX_6_1 };
        let format = learn(kernel);
        let text = varied(&text(kernel, values), &name, &numbers, [groups, levels]);
        let mut record = Record::default();
        let mut pool = vec![0];
        prop_assert_eq!(parse(&text, &format, &mut record, &mut pool), Ok(()));
        record.identity.groups = Fields::THREE_FILES.bits();
        let process = Process::new(&record, &pool);
        prop_assert_eq!(&*process.name(), name.as_slice());
        prop_assert_eq!(process.supplementary_groups().count(), groups);
        prop_assert_eq!(process.nested_ids().count(), levels);
        let mut renderer = Renderer::new(format);
        let mut rendered = Text::default();
        let rendered = rendered.render(|out| renderer.render(process, None, out)).expect("it renders");
        prop_assert_eq!(String::from_utf8_lossy(rendered), String::from_utf8_lossy(&text));
    }
}
