use std::io::{self, Write};

/// Rows below headings, in columns.
#[derive(Debug)]
pub(crate) struct Table(comfy_table::Table);

impl Table {
    pub(crate) fn new<const N: usize>(headings: [&str; N]) -> Self {
        let mut table = comfy_table::Table::new();
        table
            .load_preset(comfy_table::presets::NOTHING)
            .set_content_arrangement(comfy_table::ContentArrangement::Disabled)
            .set_header(headings.map(str::to_uppercase));
        for column in table.column_iter_mut() {
            column.set_padding((0, 2));
        }
        Self(table)
    }

    pub(crate) fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.0.add_row(cells);
    }

    pub(crate) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        for line in self.0.lines() {
            writeln!(out, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell_and_lines_end_where_their_text_does() {
        let mut table = Table::new(["key", "token"]);
        table.row(["orders/größe".into(), "7".into()]);
        table.row(["a".into(), "4711".into()]);
        let mut out = Vec::new();
        table.write(&mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(
            text,
            "KEY           TOKEN\norders/größe  7\na             4711\n"
        );
    }
}
