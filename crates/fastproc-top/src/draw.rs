//! Draws the whole screen: header, table, and overlays.

use fastproc_columns::Lookup;

use crate::{
    canvas::{Canvas, Sheet},
    cgroups,
    details::Watched,
    history::Recent,
    observation::{Cgroups, View},
    rows::{Picker, Tally},
    state::State,
    view::{
        cgroup, cgroups as cgroup_table, details,
        grid::Grid,
        header::{Header, Histories},
        overlay,
        table::Table,
        theme::Theme,
    },
};

/// State that is kept between screens.
#[derive(Debug, Default)]
pub struct Painter {
    picker: Picker,
    /// The table.
    pub table: Table,
    /// The line of the table's headings, for the mouse.
    pub table_line: u16,
    /// The machine's history.
    pub histories: Histories,
    /// The histories of processes.
    pub watched: Watched,
    /// The table of cgroups.
    pub cgroup_grid: Grid,
    /// The history of cgroups.
    pub watched_cgroups: Recent<u64, cgroups::Histories>,
    /// How many rows, groups or cgroups are shown.
    pub shown: usize,
}

impl Painter {
    /// Draws everything on an empty sheet.
    pub fn paint(
        &mut self,
        sheet: &mut Sheet,
        view: &View<'_>,
        state: &mut State,
        lookup: &mut Lookup,
        title: &str,
    ) {
        let theme = Theme::new(state.settings.colour && !state.no_colour);
        sheet.is_ascii = state.is_ascii;
        let mut canvas = Canvas::new(sheet);
        let (width, height) = (canvas.area.width, canvas.area.height);
        state.fit(width);
        if let Some(cgroups) = view.cgroups.filter(|_| state.settings.cgroups.shown) {
            self.paint_cgroups(&mut canvas, view, &cgroups, state, lookup, title, theme);
        } else if let Some(shown) = &mut state.details {
            let body = height.saturating_sub(1);
            let watched = &self.watched;
            details::draw(
                &mut canvas.lines(0, body),
                shown,
                view,
                lookup,
                watched,
                theme,
            );
        } else {
            let header_height = self.header_height(view, state, width, height);
            // Headings above the rows, and the last line below them.
            let sum = u16::from(!state.marked.is_empty());
            let room = height.saturating_sub(header_height + 2 + sum);
            let picked = self.picker.pick(view, state, lookup, room.into());
            self.shown = if state.settings.group.is_some() {
                self.picker.groups.len()
            } else {
                picked.rows.len()
            };
            self.watched.take(&picked.rows);
            if header_height > 0 {
                let header = self.header(view, state, title, theme, picked.tally);
                header.draw(&mut canvas.lines(0, header_height), height);
            }
            self.table_line = header_height;
            let mut part = canvas.lines(header_height, room + 1);
            if state.settings.group.is_some() {
                self.table
                    .draw_groups(&mut part, &self.picker.groups, state, theme);
            } else {
                self.table.draw(&mut part, &picked, state, lookup, theme);
            }
            if let Some(sums) = &picked.marked {
                let text = format!(
                    "marked {}: {} of them shown, {:.1}% CPU, {} resident, {} threads",
                    state.marked.len(),
                    sums.processes,
                    sums.cpu_share * 100.0,
                    crate::view::header::size(sums.rss),
                    sums.threads,
                );
                canvas.text(height.saturating_sub(2), 0, &text, theme.marked());
            }
            self.picker.recycle(picked);
        }
        let below = state.place_below();
        if let Some(overlay) = &mut state.overlay {
            overlay::draw(
                &mut canvas.lines(0, height.saturating_sub(1)),
                overlay,
                &state.targets,
                below,
                theme,
            );
        }
        overlay::last_line(&mut canvas.lines(height.saturating_sub(1), 1), state, theme);
    }

    /// The table of cgroups, or one of them.
    #[allow(clippy::too_many_arguments, reason = "where, what and how")]
    fn paint_cgroups(
        &mut self,
        canvas: &mut Canvas<'_>,
        view: &View<'_>,
        cgroups: &Cgroups<'_>,
        state: &mut State,
        lookup: &mut Lookup,
        title: &str,
        theme: Theme,
    ) {
        let (width, height) = (canvas.area.width, canvas.area.height);
        if let Some(shown) = &mut state.cgroups.details {
            let nothing = cgroups::Histories::default();
            let histories = self.watched_cgroups.get(&shown.id).unwrap_or(&nothing);
            let mut body = canvas.lines(0, height.saturating_sub(1));
            cgroup::draw(&mut body, shown, cgroups, view, lookup, histories, theme);
            return;
        }
        let header_height = self.header_height(view, state, width, height);
        let tally = self.picker.tally(view);
        if header_height > 0 {
            let header = self.header(view, state, title, theme, tally);
            header.draw(&mut canvas.lines(0, header_height), height);
        }
        self.table_line = header_height;
        let room = height.saturating_sub(header_height + 1);
        let mut part = canvas.lines(header_height, room);
        let mut rows = cgroups.rows();
        state.cgroups.pick(&mut rows, state.settings.cgroups.tree);
        self.shown = rows.len();
        let grid = &mut self.cgroup_grid;
        cgroup_table::draw(&mut part, grid, cgroups, &rows, state, theme);
        if self.watched_cgroups.takes() {
            let window = state.cgroups.chosen.window;
            let seen = rows.iter().skip(window.top).take(window.height);
            seen.for_each(|row| watch(&mut self.watched_cgroups, row));
        }
    }

    /// Adds a look at all histories of cgroups, and at that of the one in detail.
    pub fn look_at_cgroups(&mut self, cgroups: &Cgroups<'_>, state: &State) {
        self.watched_cgroups.look();
        let shown = state.cgroups.details.as_ref();
        if let Some(row) = shown.and_then(|shown| cgroups.row(shown.id)) {
            watch(&mut self.watched_cgroups, &row);
        }
    }

    fn header<'a>(
        &'a self,
        view: &View<'a>,
        state: &State,
        title: &'a str,
        theme: Theme,
        tally: Tally,
    ) -> Header<'a> {
        Header {
            view: *view,
            tally,
            histories: &self.histories,
            title,
            each_cpu: state.settings.each_cpu,
            has_high_graphs: !state.is_text,
            theme,
        }
    }

    fn header_height(&self, view: &View<'_>, state: &State, width: u16, height: u16) -> u16 {
        if !state.settings.header {
            return 0;
        }
        let header = self.header(view, state, "", Theme::new(false), Tally::default());
        header.height(width, height)
    }
}

/// Adds the activity of a cgroup since the last snapshot to its history.
fn watch(watched: &mut Recent<u64, cgroups::Histories>, row: &fastproc_columns::cgroups::Row<'_>) {
    watched.push(row.cgroup.id(), |histories, missed| {
        histories.push(row, missed);
    });
}

#[cfg(test)]
mod tests;
