//! What is shown without rows is what is shown with them.

use fastproc::{Fields, SourceKind};
use fastproc_columns::FIELDS;
use fastproc_testbed::{Moving, gate, needs};

use super::*;
use crate::{
    feed::{Feed, Live},
    rows::Picker,
    settings::Settings,
};

/// What a screen of this height shows, and its window.
fn picked(
    picker: &mut Picker,
    view: &View<'_>,
    state: &mut State,
    lookup: &mut Lookup,
    height: usize,
) -> (Vec<String>, crate::window::Window) {
    let picked = picker.pick(view, state, lookup, height);
    let rows = picked.rows.iter().map(|row| {
        let (identity, users) = (row.process.identity(), row.process.users());
        let change = row.change.map(|of| (of.cpu_share, of.minflt_per_second));
        format!("{identity:?} {users:?} {:?} {change:?}", row.cpu_times())
    });
    let rows = rows.collect();
    picker.recycle(picked);
    (rows, state.chosen.window)
}

#[test]
fn without_rows_the_same_is_shown_as_with_them() {
    needs!(gate::bpf());
    let fields = Fields::TOP | Fields::USERS | Fields::SCHEDULING;
    let follows = |field: &&Field| {
        let sort: fastproc_columns::Sort = field.name.parse().expect("a field");
        fields.contains(field.needs)
            && field.follows_record(true)
            && !field.is_guarded()
            && sort.by_number().is_some()
    };
    let names: Vec<&str> = FIELDS
        .iter()
        .filter(follows)
        .map(|field| field.name)
        .collect();
    assert!(
        names.contains(&"pcpu") && names.contains(&"euid"),
        "{names:?}"
    );
    let live = Live::open(Some(SourceKind::Bpf), fields, false).expect("BPF can be used");
    let mut feed = Feed::live(live);
    let mut lookup = Lookup::new(feed.host(), true).expect("there is a /proc");
    let mut moving = Moving::start();
    // One screen always has the same order, one another order each time, and one misses every other snapshot.
    let mut pickers: Vec<Picker> = names.iter().map(|_| Picker::default()).collect();
    let (mut changing, mut rare) = (Picker::default(), Picker::default());
    let (mut of_all, mut resting) = (0, 0);
    for round in 0..48 {
        moving.step(round);
        assert!(feed.step().expect("it walks"));
        let view = feed.view().expect("a snapshot");
        lookup.set_time(view.snapshot.stats().kernel_end_ns());
        if let Some(before) = view.before {
            let beside = Comparison::new(before, &view.snapshot);
            of_all += view.snapshot.len();
            resting += (0..view.snapshot.len())
                .filter(|&place| beside.resting(place).is_some())
                .count();
        }
        let settings = Settings {
            kernel_threads: round % 3 > 0,
            exited: round % 2 > 0,
            ..Settings::default()
        };
        let mut state = State::new(settings).expect("they are right");
        for (at, &name) in names.iter().enumerate() {
            state.sort_by(name, Some(round % 4 < 2));
            let height = if at % 2 == 0 { 10 } else { 10_000 };
            state.set_filter("pid > 0").expect("a filter");
            assert!(Plain::new(&view, &state).is_none());
            let with = picked(
                &mut Picker::default(),
                &view,
                &mut state,
                &mut lookup,
                height,
            );
            state.set_filter("").expect("no filter");
            assert_eq!(Plain::new(&view, &state).is_some(), round > 0);
            let mut others = vec![&mut pickers[at], &mut changing];
            if round % 2 == 0 && name == "pcpu" {
                others.push(&mut rare);
            }
            for picker in others {
                let without = picked(picker, &view, &mut state, &mut lookup, height);
                assert_eq!(without, with, "by {name} in round {round}");
            }
        }
    }
    assert!(resting > of_all / 2, "{resting} of {of_all} rested");
}
