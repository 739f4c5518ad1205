//! Every key has an effect, and no process is changed without a question.

use ratatui_crossterm::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::*;
use crate::id::Id;
use crate::{
    cgroups,
    keys::{BINDINGS, Binding},
    overlay::Choice,
    settings::Settings,
    target::Target,
};
use fastproc_columns::FIELDS;

/// A state with everything in use, at this place.
fn state(place: Place, is_past: bool) -> State {
    let mut settings = Settings::default();
    (settings.tree, settings.filter) = (true, "rss > 1M".into());
    settings.sort = "rss".into();
    let mut state = State::new(settings).expect("valid");
    let id = Id {
        pid: 7,
        tid: 7,
        start_ns: 1,
        process_start_ns: 1,
    };
    let window = Window {
        cursor: 50,
        top: 45,
        left: 8,
        height: 10,
        rows: 100,
    };
    state.chosen.window = window;
    (state.selected, state.follow) = (Some(id), Some(id));
    state.marked.insert(id);
    state.search = "x".into();
    state.is_past = is_past;
    if place == Place::Details {
        let mut details = Details::new(id, Page::Limits);
        (details.window, details.lines) = (window, Some(Ok(Vec::new())));
        state.details = Some(details);
    }
    state.settings.cgroups.shown = matches!(place, Place::Cgroups | Place::Cgroup);
    state.settings.cgroups.tree = true;
    state.set_cgroup_filter("memory > 1M").expect("valid");
    state
        .cgroups
        .chosen
        .sort_by("id", None, &mut state.settings.cgroups.sort);
    (state.cgroups.chosen.window, state.cgroups.selected) = (window, Some(7));
    if place == Place::Cgroup {
        let mut details = cgroups::Details::new(7);
        details.window = window;
        state.cgroups.details = Some(details);
    }
    state.targets = vec![Target::new(id)];
    state.overlay = match place {
        Place::Table | Place::Details | Place::Cgroups | Place::Cgroup => None,
        Place::List => {
            let names = FIELDS.iter().map(|field| field.name);
            let items = names.map(|name| (name.into(), Choice::Column(name, true)));
            Some(Overlay::List(List {
                title: "Columns",
                items: items.take(100).collect(),
                window,
                typed: "p".into(),
            }))
        }
        Place::Prompt => Some(Overlay::Prompt {
            prompt: Prompt::Search,
            text: "abc".into(),
            error: None,
        }),
        Place::Question => Some(Overlay::Question {
            action: ProcessAction::Nice(1),
        }),
        Place::Help => Some(Overlay::Help(window)),
    };
    state
}

#[test]
fn every_key_does_something() {
    for Binding {
        places, keys, help, ..
    } in BINDINGS
    {
        let all = places
            .iter()
            .flat_map(|place| keys.iter().map(move |key| (place, *key)));
        for (place, key) in all {
            let changes = |is_past| {
                let mut state = state(*place, is_past);
                let before = format!("{state:?}");
                state.key(key).is_some() || format!("{state:?}") != before
            };
            assert!(
                changes(false) || changes(true),
                "{place:?}: {} ({help})",
                key.name()
            );
        }
    }
}

#[test]
fn nothing_is_done_to_a_process_without_a_question() {
    for action in [Action::Kill, Action::NiceBy(1), Action::Renice] {
        let mut state = state(Place::Table, false);
        assert_eq!(state.act(Place::Table, action), None);
        let mut effect = None;
        for _ in 0..3 {
            if matches!(state.overlay, Some(Overlay::Question { .. })) {
                break;
            }
            if let Some(Overlay::Prompt { text, .. }) = &mut state.overlay {
                *text = "5".into();
            }
            effect = state.act_on_overlay(Action::Accept);
        }
        assert!(effect.is_none() && matches!(state.overlay, Some(Overlay::Question { .. })));
        // Esc goes a step back: to the list or the prompt, if there was one.
        state.act_on_overlay(Action::Back);
        let has_step = !matches!(action, Action::NiceBy(_));
        assert_eq!(state.overlay.is_some(), has_step, "{action:?}");
        state.act_on_overlay(Action::Accept);
        assert_eq!(state.act_on_overlay(Action::Refuse), None);
        assert!(state.overlay.is_none());
    }
    let mut state = state(Place::Table, true);
    state.act(Place::Table, Action::Kill);
    assert!(
        state.overlay.is_none(),
        "those of a recording are left alone"
    );
}

#[test]
fn a_signal_is_for_a_process_once_whichever_of_its_threads_are_marked() {
    let mut state = state(Place::Table, false);
    let thread = |pid, tid| Id {
        pid,
        tid,
        start_ns: u64::from(tid),
        process_start_ns: u64::from(pid),
    };
    state.marked = [(7, 7), (7, 8), (9, 11), (7, 9)]
        .map(|(pid, tid)| thread(pid, tid))
        .into();
    state.act(Place::Table, Action::Kill);
    let targets: Vec<_> = state.targets.iter().map(|target| target.id).collect();
    assert_eq!(targets, [thread(7, 7), thread(9, 9)]);
    // Each thread has its own nice value.
    state.overlay = None;
    state.act(Place::Table, Action::NiceBy(1));
    assert_eq!(state.targets.len(), 4);
}

#[test]
fn a_burst_writes_no_settings_and_leaves_only_if_nothing_follows() {
    let key = |name: char| {
        let key = KeyEvent::new(KeyCode::Char(name), KeyModifiers::NONE);
        Key::all_of(&key).next().expect("one")
    };
    let mut state = state(Place::Table, false);
    assert_eq!(state.key(key('W')), Some(Effect::Save));
    assert_eq!(state.key(key('q')), Some(Effect::Quit));
    state.is_burst = true;
    assert_eq!(state.key(key('W')), None);
    assert!(
        state
            .message
            .as_ref()
            .is_some_and(|message| message.is_error)
    );
    assert!(state.message.is_some(), "it is read when nothing follows");
    assert_eq!(state.key(key('q')), Some(Effect::QuitIfLast));
    let interrupt = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    let interrupt = Key::all_of(&interrupt).next().expect("one");
    assert_eq!(state.key(interrupt), Some(Effect::Quit));
}

#[test]
fn typed_text_is_accepted_or_refused_with_a_reason() {
    for (place, prompt, right, wrong) in [
        (Place::Table, Prompt::Filter, "rss > 5M", "rss >"),
        (Place::Table, Prompt::Interval, "0.5", "0"),
        (Place::Table, Prompt::Pid, "12", "x"),
        (Place::Table, Prompt::Nice, "-20", "20"),
        (Place::Cgroups, Prompt::Filter, "memory > 5M", "vsize > 5M"),
    ] {
        let mut state = state(place, false);
        assert!(state.take(prompt, wrong).is_err(), "{prompt:?}");
        assert!(state.take(prompt, right).is_ok(), "{prompt:?}");
    }
}

#[test]
fn a_word_filters_by_text_and_is_shown_as_it_was_typed() {
    let mut state = state(Place::Table, false);
    state.take(Prompt::Filter, "nginx").expect("a word");
    let filter = state.settings.filter.clone();
    assert!(filter.contains("cmdline =~ '(?i)nginx'"), "{filter}");
    state
        .set_filter(&format!("({filter}) && (pid > 1)"))
        .expect("valid");
    state.act(Place::Table, Action::Filter);
    let Some(Overlay::Prompt { text, .. }) = state.overlay.clone() else {
        panic!("it asks");
    };
    assert_eq!(text, "(nginx) && (pid > 1)");
    state
        .take(Prompt::Filter, "(nginx) && (pid > 2)")
        .expect("it was shown");
    assert_eq!(state.settings.filter, format!("({filter}) && (pid > 2)"));
    state.take(Prompt::Filter, "nginx").expect("it was shown");
    assert_eq!(state.settings.filter, filter);
}

#[test]
fn the_table_of_cgroups_has_an_order_a_filter_and_columns_of_its_own() {
    let mut state = state(Place::Cgroups, false);
    let processes = format!(
        "{:?} {:?} {:?}",
        state.chosen.sort, state.chosen.filter, state.chosen.columns
    );
    state.act(Place::Cgroups, Action::SortBy("memory"));
    assert_eq!(state.settings.cgroups.sort, "-memory");
    state.act(Place::Cgroups, Action::Reverse);
    assert_eq!(state.settings.cgroups.sort, "memory");
    state.set_cgroup_columns("memory,path").expect("columns");
    state.take(Prompt::Filter, "path =~ a").expect("a filter");
    assert_eq!(state.settings.cgroups.columns, ["memory", "path"]);
    let again =
        cgroups::Table::new(&mut state.settings.cgroups.clone()).expect("it was taken before");
    let shown = |table: &cgroups::Table| {
        format!(
            "{:?} {:?} {:?}",
            table.chosen.columns, table.chosen.filter, table.chosen.sort
        )
    };
    assert_eq!(shown(&again), shown(&state.cgroups));
    assert_eq!(
        format!(
            "{:?} {:?} {:?}",
            state.chosen.sort, state.chosen.filter, state.chosen.columns
        ),
        processes
    );
    let needs = state.needs_of_cgroups();
    assert_eq!(needs, Some(fastproc::cgroups::Fields::MEMORY));
    state.act(Place::Cgroups, Action::Cgroups);
    assert_eq!(
        (state.place(), state.needs_of_cgroups()),
        (Place::Table, None)
    );
}

#[test]
fn moves_to_the_first_and_the_last_row_and_to_the_first_of_a_new_order() {
    let mut state = state(Place::Table, false);
    for (action, row) in [
        (Action::First, 0),
        (Action::Last, 99),
        (Action::SortBy("pid"), 0),
    ] {
        state.act(Place::Table, action);
        assert_eq!(state.chosen.window.cursor, row);
    }
}

#[test]
fn a_group_is_opened_within_the_filter() {
    let mut state = state(Place::Table, false);
    state.set_filter("pid < 10 || pid == 20").expect("valid");
    state.settings.group = Some(GroupBy::Name);
    state.selected_group = Some(b"sleep".to_vec());
    assert_eq!(state.act(Place::Table, Action::Details), None);
    assert_eq!(
        state.settings.filter,
        r#"(pid < 10 || pid == 20) && comm == "sleep""#
    );
    assert!(state.chosen.filter.is_some());
    // Esc goes back what was done, step by step.
    (state.search, state.follow) = (String::new(), None);
    let filter = "pid < 10 || pid == 20";
    for (left, by) in [(filter, Some(GroupBy::Name)), (filter, None), ("", None)] {
        assert_eq!(state.act(Place::Table, Action::Back), None);
        assert_eq!(
            (state.settings.filter.as_str(), state.settings.group),
            (left, by)
        );
    }
}

#[test]
fn columns_are_picked_in_their_order() {
    let mut state = state(Place::Table, false);
    state.set_columns("pid,rss,user").expect("known");
    state.act(Place::Table, Action::Columns);
    // rss goes before pid, user goes, and what is typed comes.
    for action in [
        Action::Move(1),
        Action::Side(-1),
        Action::Last,
        Action::First,
        Action::Move(2),
        Action::Mark,
    ] {
        state.act_on_overlay(action);
    }
    for character in "ppid".chars() {
        let key = KeyEvent::new(KeyCode::Char(character), KeyModifiers::NONE);
        state.key(Key::all_of(&key).next().expect("one"));
    }
    state.act_on_overlay(Action::Mark);
    state.act_on_overlay(Action::Accept);
    assert_eq!(state.settings.columns, ["rss", "pid", "ppid"]);
}

#[test]
fn the_last_line_shows_keys_that_have_effects_there() {
    for (place, bar) in keys::BARS {
        for (name, _) in bar {
            let has = |binding: &&Binding| {
                binding.places.contains(&place)
                    && binding.keys.iter().any(|key| key.name() == *name)
            };
            assert!(
                name.contains('-') || BINDINGS.iter().any(|binding| has(&binding)),
                "{place:?}: {name}"
            );
        }
    }
}

#[test]
fn the_next_key_removes_what_was_said_of_a_refusal() {
    let mut state = state(Place::Table, false);
    state.fail("what was cannot be changed");
    let escape = KeyEvent::new(KeyCode::Esc, KeyModifiers::NONE);
    state.key(Key::all_of(&escape).next().expect("one"));
    assert!(!state.message.is_some_and(|message| message.is_error));
}
