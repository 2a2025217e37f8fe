//! A row under any layout: any bytes are a row or refused, and every column of a row can be read.

#![no_main]

use firn_format::row::{RowColumn, RowLayout, RowVersion, RowView};
use firn_fuzz::Input;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut input = Input::new(bytes);
    let newest = u16::from(input.u8() % 4);
    let columns: Vec<RowColumn> = (0..input.u8() % 9).map(|_| column(&mut input)).collect();
    let Ok(layout) = RowLayout::new(RowVersion(newest), columns) else { return };
    let Ok(row) = RowView::parse(&layout, input.take_all()) else { return };
    assert_eq!(row.columns().count(), layout.columns().len());
    for ordinal in 0..=layout.columns().len() {
        let _ = row.column(ordinal);
    }
});

fn column(input: &mut Input<'_>) -> RowColumn {
    let column_type = input.column_type();
    let versions = input.u8();
    RowColumn {
        added_in: RowVersion(u16::from(versions & 3)),
        dropped_in: (versions & 16 != 0).then_some(RowVersion(u16::from(versions >> 2 & 3))),
        ..RowColumn::new(column_type, input.flag())
    }
}
