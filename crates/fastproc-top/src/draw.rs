//! All of a screen: header, table, and what lies over it.

use fastproc_columns::Lookup;

use crate::{
    canvas::{Canvas, Sheet},
    details::Watched,
    observation::View,
    rows::Picker,
    state::State,
    view::{
        details,
        header::{Header, Histories},
        overlay,
        table::Table,
        theme::Theme,
    },
};

/// What is kept from one screen to the next.
#[derive(Debug, Default)]
pub struct Painter {
    picker: Picker,
    /// The table.
    pub table: Table,
    /// Where the table is, for the mouse: the line of the headings.
    pub table_line: u16,
    /// The machine's history.
    pub histories: Histories,
    /// That of processes.
    pub watched: Watched,
}

impl Painter {
    /// Draws it all on an empty sheet.
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
        if let Some(shown) = &mut state.details {
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
            if self.watched.takes() {
                picked.rows.iter().for_each(|row| self.watched.push(row));
            }
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
        if let Some(overlay) = &mut state.overlay {
            overlay::draw(
                &mut canvas.lines(0, height.saturating_sub(1)),
                overlay,
                &state.targets,
                theme,
            );
        }
        overlay::last_line(&mut canvas.lines(height.saturating_sub(1), 1), state, theme);
    }

    fn header<'a>(
        &'a self,
        view: &View<'a>,
        state: &State,
        title: &'a str,
        theme: Theme,
        tally: crate::rows::Tally,
    ) -> Header<'a> {
        Header {
            view: *view,
            tally,
            histories: &self.histories,
            title,
            each_cpu: state.settings.each_cpu,
            theme,
        }
    }

    fn header_height(&self, view: &View<'_>, state: &State, width: u16, height: u16) -> u16 {
        if !state.settings.header {
            return 0;
        }
        let header = self.header(
            view,
            state,
            "",
            Theme::new(false),
            crate::rows::Tally::default(),
        );
        header.height(width, height)
    }
}
