//! `docs/tables.md` describes the tables and views of the code. `WHIT_BLESS=1` writes its lists anew.

use whit_query::VIEWS;
use whit_tables::{PAGE, SCHEMA, page, query_tables};
use whit_testing::{assert_published, published};

/// A list between two marks.
fn with_list(text: &str, name: &str, list: &str) -> String {
    let (begin, end) = (format!("<!-- {name} -->\n"), format!("<!-- end of {name} -->\n"));
    let (before, rest) = text.split_once(&begin).expect("the beginning of the list");
    let (_, after) = rest.split_once(&end).expect("the end of the list");
    format!("{before}{begin}\n{list}\n{end}{after}")
}

fn views() -> String {
    let row = |view: &whit_query::View| format!("| `{}` | {} |\n", view.name, view.meaning);
    format!("| view | rows |\n|---|---|\n{}", VIEWS.iter().map(row).collect::<String>())
}

#[test]
fn the_page_lists_the_tables_and_views_of_the_code() {
    let text = with_list(&published(PAGE), "views", &views());
    let tables = format!("Version of these tables: {SCHEMA}.\n\n{}", page().trim_end());
    assert_published(PAGE, &with_list(&text, "tables", &format!("{tables}\n")));
}

#[test]
fn names_are_plain_and_meanings_are_sentences_without_their_end() {
    for table in query_tables() {
        let columns = table.columns();
        let mut names: Vec<_> = columns.iter().map(|column| column.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), columns.len(), "{}", table.name());
        for column in columns {
            let is_plain = |c: char| c.is_ascii_lowercase() || c == '_';
            assert!(column.name.chars().all(is_plain), "{}", column.name);
            assert!(
                !column.meaning.ends_with('.') && !column.meaning.contains('|'),
                "{}",
                column.name
            );
        }
    }
}

/// One file each, which makes the view of its name.
#[test]
fn each_file_in_sql_is_a_view() {
    let folder = whit_testing::run::repository().join("sql");
    let files = std::fs::read_dir(folder).expect("the folder of views");
    let mut files: Vec<_> = files
        .map(|entry| entry.expect("an entry").path())
        // Questions over the views have a folder of their own.
        .filter(|path| path.is_file())
        .map(|path| path.file_name().expect("a name").to_string_lossy().into_owned())
        .collect();
    let mut views: Vec<_> = VIEWS.iter().map(|view| format!("{}.sql", view.name)).collect();
    files.sort();
    views.sort();
    assert_eq!(files, views);
    for view in VIEWS {
        let makes = format!("CREATE VIEW {} AS\n", view.name);
        assert_eq!(view.sql.matches(&makes).count(), 1, "{}", view.name);
    }
}
