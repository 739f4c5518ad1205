//! The Arrow C data interface and its stream, by which columns are passed on without a copy.
//!
//! The structures are those of <https://arrow.apache.org/docs/format/CDataInterface.html>. `private_data` owns what
//! they point to, until the consumer calls `release`, from any thread.

use std::{
    ffi::{CStr, CString, c_char, c_int, c_void},
    ptr,
    sync::Arc,
};

use crate::{
    columns::{ColumnData, Resolution, TableData},
    data::{Data, Texts, Values},
};

const NULLABLE: i64 = 2;

/// `struct ArrowSchema`.
#[repr(C)]
#[derive(Debug)]
pub struct ArrowSchema {
    format: *const c_char,
    name: *const c_char,
    metadata: *const c_char,
    flags: i64,
    n_children: i64,
    children: *mut *mut Self,
    dictionary: *mut Self,
    release: Option<unsafe extern "C" fn(*mut Self)>,
    private_data: *mut c_void,
}

/// `struct ArrowArray`.
#[repr(C)]
#[derive(Debug)]
pub struct ArrowArray {
    length: i64,
    null_count: i64,
    offset: i64,
    n_buffers: i64,
    n_children: i64,
    buffers: *mut *const c_void,
    children: *mut *mut Self,
    dictionary: *mut Self,
    release: Option<unsafe extern "C" fn(*mut Self)>,
    private_data: *mut c_void,
}

/// `struct ArrowArrayStream`.
#[repr(C)]
#[derive(Debug)]
pub struct ArrowArrayStream {
    get_schema: Option<unsafe extern "C" fn(*mut Self, *mut ArrowSchema) -> c_int>,
    get_next: Option<unsafe extern "C" fn(*mut Self, *mut ArrowArray) -> c_int>,
    get_last_error: Option<unsafe extern "C" fn(*mut Self) -> *const c_char>,
    release: Option<unsafe extern "C" fn(*mut Self)>,
    private_data: *mut c_void,
}

// SAFETY: the pointers of each lead to memory that only it owns, or that is shared and never written again; the
// interface lets a consumer move a structure to another thread and release it there.
unsafe impl Send for ArrowSchema {}
// SAFETY: as above.
unsafe impl Send for ArrowArray {}
// SAFETY: as above.
unsafe impl Send for ArrowArrayStream {}

macro_rules! release_when_dropped {
    ($($structure:ident),*) => {$(
        impl Drop for $structure {
            fn drop(&mut self) {
                if let Some(release) = self.release {
                    // SAFETY: it was not released, otherwise `release` would be `None`.
                    unsafe { release(self) }
                }
            }
        }
    )*};
}
release_when_dropped!(ArrowSchema, ArrowArray, ArrowArrayStream);

/// The data owned by a schema.
struct SchemaParts {
    format: CString,
    name: CString,
    children: Vec<*mut ArrowSchema>,
}

impl ArrowSchema {
    fn new(format: &CStr, name: &str, children: Vec<Self>) -> Self {
        let mut parts = Box::new(SchemaParts {
            format: format.to_owned(),
            // Names of fields have no NUL.
            name: CString::new(name).unwrap_or_default(),
            children: children
                .into_iter()
                .map(Box::new)
                .map(Box::into_raw)
                .collect(),
        });
        Self {
            format: parts.format.as_ptr(),
            name: parts.name.as_ptr(),
            metadata: ptr::null(),
            flags: NULLABLE,
            n_children: parts.children.len() as i64,
            children: parts.children.as_mut_ptr(),
            dictionary: ptr::null_mut(),
            release: Some(release_schema),
            private_data: Box::into_raw(parts).cast(),
        }
    }

    /// The schema of a column.
    pub fn of_column(column: &ColumnData, text: bool) -> Self {
        let item = |format| vec![Self::new(format, "item", Vec::new())];
        let text = if text { c"U" } else { c"Z" };
        let (format, children) = match &column.data.values {
            Values::Signed(_) => match column.subject.resolution() {
                Some(Resolution::Seconds) => (c"tss:UTC", Vec::new()),
                Some(Resolution::Microseconds) => (c"tsu:UTC", Vec::new()),
                None => (c"l", Vec::new()),
            },
            Values::Unsigned(_) => (c"L", Vec::new()),
            Values::Real(_) => (c"g", Vec::new()),
            Values::Truth(_) => (c"b", Vec::new()),
            Values::Text(_) => (text, Vec::new()),
            Values::Arguments(_) => (c"+L", item(text)),
            Values::Numbers(_) => (c"+L", item(c"I")),
        };
        Self::new(format, &column.key, children)
    }

    /// The schema of a table: a structure of its columns.
    pub fn of_table(table: &TableData) -> Self {
        let columns = table.columns.iter();
        let children = columns.map(|column| Self::of_column(column, table.text));
        let mut schema = Self::new(c"+s", "", children.collect());
        schema.flags = 0;
        schema
    }
}

unsafe extern "C" fn release_schema(schema: *mut ArrowSchema) {
    // SAFETY: the interface gives a valid structure, and `new` made its private data; children that were moved away
    // have no `release` any more.
    unsafe {
        let parts = Box::from_raw((*schema).private_data.cast::<SchemaParts>());
        (*schema).release = None;
        for &child in &parts.children {
            drop(Box::from_raw(child));
        }
    }
}

/// The data owned by an array.
struct ArrayParts {
    buffers: Vec<*const c_void>,
    children: Vec<*mut ArrowArray>,
    /// The owner of the buffers.
    _owner: Arc<ColumnData>,
}

/// The buffer of a structure: it has none.
fn nothing<T>() -> *const T {
    ptr::null()
}

impl ArrowArray {
    fn new(
        owner: &Arc<ColumnData>,
        (length, nulls): (usize, usize),
        buffers: Vec<*const c_void>,
        children: Vec<Self>,
    ) -> Self {
        let mut parts = Box::new(ArrayParts {
            buffers,
            children: children
                .into_iter()
                .map(Box::new)
                .map(Box::into_raw)
                .collect(),
            _owner: Arc::clone(owner),
        });
        Self {
            length: length as i64,
            null_count: nulls as i64,
            offset: 0,
            n_buffers: parts.buffers.len() as i64,
            n_children: parts.children.len() as i64,
            buffers: parts.buffers.as_mut_ptr(),
            children: parts.children.as_mut_ptr(),
            dictionary: ptr::null_mut(),
            release: Some(release_array),
            private_data: Box::into_raw(parts).cast(),
        }
    }

    /// The array of a column. Text that is not UTF-8 is converted in a copy.
    pub fn of_column(column: &Arc<ColumnData>, text: bool) -> Self {
        let column = &as_utf8(column, text);
        let Data {
            values,
            known,
            unknown,
            len,
        } = &column.data;
        let valid = if *unknown == 0 {
            nothing()
        } else {
            known.as_bytes().as_ptr().cast()
        };
        let size = (*len, *unknown);
        let plain =
            |values: *const c_void| Self::new(column, size, vec![valid, values], Vec::new());
        let list = |offsets: &[i64], items| {
            Self::new(
                column,
                size,
                vec![valid, offsets.as_ptr().cast()],
                vec![items],
            )
        };
        match values {
            Values::Unsigned(numbers) => plain(numbers.as_ptr().cast()),
            Values::Signed(numbers) => plain(numbers.as_ptr().cast()),
            Values::Real(numbers) => plain(numbers.as_ptr().cast()),
            Values::Truth(bits) => plain(bits.as_bytes().as_ptr().cast()),
            Values::Text(texts) => Self::new(column, size, texts_at(valid, texts), Vec::new()),
            Values::Arguments(lists) => {
                let buffers = texts_at(nothing(), &lists.items);
                let items = Self::new(column, (lists.items.len(), 0), buffers, Vec::new());
                list(&lists.offsets, items)
            }
            Values::Numbers(lists) => {
                let buffers = vec![nothing(), lists.items.as_ptr().cast()];
                let items = Self::new(column, (lists.items.len(), 0), buffers, Vec::new());
                list(&lists.offsets, items)
            }
        }
    }

    fn of_table(table: &TableData) -> Self {
        let columns = table.columns.iter();
        let children = columns.map(|column| Self::of_column(column, table.text));
        let children: Vec<_> = children.collect();
        let owner = &table.columns[0];
        Self::new(owner, (table.len, 0), vec![nothing()], children)
    }
}

fn texts_at(valid: *const c_void, texts: &Texts) -> Vec<*const c_void> {
    vec![
        valid,
        texts.offsets.as_ptr().cast(),
        texts.items.as_ptr().cast(),
    ]
}

/// The column with texts in UTF-8, if `text` is set.
fn as_utf8(column: &Arc<ColumnData>, text: bool) -> Arc<ColumnData> {
    let values = match &column.data.values {
        Values::Text(texts) if text && !texts.are_utf8() => Values::Text(texts.to_utf8()),
        Values::Arguments(lists) if text && !lists.items.are_utf8() => {
            let mut lists = lists.clone();
            lists.items = lists.items.to_utf8();
            Values::Arguments(lists)
        }
        _ => return Arc::clone(column),
    };
    let data = Data {
        values,
        known: column.data.known.clone(),
        ..column.data
    };
    Arc::new(ColumnData {
        subject: column.subject,
        key: column.key.clone(),
        data,
    })
}

unsafe extern "C" fn release_array(array: *mut ArrowArray) {
    // SAFETY: as for a schema.
    unsafe {
        let parts = Box::from_raw((*array).private_data.cast::<ArrayParts>());
        (*array).release = None;
        for &child in &parts.children {
            drop(Box::from_raw(child));
        }
    }
}

/// The data owned by a stream.
struct StreamParts {
    table: Arc<TableData>,
    is_done: bool,
}

impl ArrowArrayStream {
    /// A stream with one array: the table.
    pub fn of_table(table: &Arc<TableData>) -> Self {
        let parts = StreamParts {
            table: Arc::clone(table),
            is_done: false,
        };
        Self {
            get_schema: Some(stream_schema),
            get_next: Some(stream_next),
            get_last_error: Some(stream_error),
            release: Some(release_stream),
            private_data: Box::into_raw(Box::new(parts)).cast(),
        }
    }
}

unsafe extern "C" fn stream_schema(
    stream: *mut ArrowArrayStream,
    schema: *mut ArrowSchema,
) -> c_int {
    // SAFETY: the interface gives a valid stream, which `of_table` made, and room for a schema.
    unsafe {
        let parts = &*(*stream).private_data.cast::<StreamParts>();
        schema.write(ArrowSchema::of_table(&parts.table));
    }
    0
}

unsafe extern "C" fn stream_next(stream: *mut ArrowArrayStream, array: *mut ArrowArray) -> c_int {
    // SAFETY: as above; a stream is used by one thread at a time.
    unsafe {
        let parts = &mut *(*stream).private_data.cast::<StreamParts>();
        if parts.is_done {
            // A released array marks the end. All of it is plain data, for which zeroes are valid.
            array.write_bytes(0, 1);
        } else {
            array.write(ArrowArray::of_table(&parts.table));
            parts.is_done = true;
        }
    }
    0
}

unsafe extern "C" fn stream_error(_: *mut ArrowArrayStream) -> *const c_char {
    ptr::null()
}

unsafe extern "C" fn release_stream(stream: *mut ArrowArrayStream) {
    // SAFETY: as above.
    unsafe {
        drop(Box::from_raw((*stream).private_data.cast::<StreamParts>()));
        (*stream).release = None;
    }
}
