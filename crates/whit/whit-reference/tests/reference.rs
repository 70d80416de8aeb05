//! The reference of the repository is the program's, and manual pages are such that `man` reads them.

use std::fs;
use std::process::Command;
use whit_testing::run::repository;
use whit_testing::{Skip, check};

#[test]
fn the_reference_in_the_repository_is_that_of_the_program() {
    let path = repository().join("docs/reference.md");
    let actual = whit_reference::markdown();
    if std::env::var_os("WHIT_BLESS").is_some() {
        fs::write(&path, &actual).unwrap();
    }
    let expected = fs::read_to_string(&path).unwrap();
    assert!(actual == expected, "{} is of another version: WHIT_BLESS=1 writes it", path.display());
}

#[test]
fn each_command_has_a_page_that_man_reads_without_warnings() {
    check("each_command_has_a_page_that_man_reads_without_warnings", || {
        let directory = tempfile::tempdir().unwrap();
        let pages = whit_reference::write_manual(directory.path()).unwrap();
        let name =
            |path: &std::path::Path| path.file_name().unwrap().to_string_lossy().into_owned();
        let names: Vec<_> = pages.iter().map(|page| name(page)).collect();
        for expected in ["whit.1", "whit-record.1", "whit-switches.1"] {
            assert!(names.iter().any(|name| name == expected), "{names:?}");
        }
        let text = fs::read_to_string(directory.path().join("whit-record.1")).unwrap();
        for part in ["\\-\\-call\\-graph", "CALL CHAINS", "SH EXAMPLES\n.nf\n"] {
            assert!(text.contains(part), "{part}");
        }
        if Command::new("groff").arg("--version").output().is_err() {
            return Err(Skip("groff is not installed".to_owned()));
        }
        for page in &pages {
            let output = Command::new("groff")
                .args(["-man", "-Tutf8", "-ww", "-z"])
                .arg(page)
                .output()
                .unwrap();
            let warnings = String::from_utf8_lossy(&output.stderr);
            assert!(
                output.status.success() && warnings.is_empty(),
                "{}: {warnings}",
                page.display()
            );
        }
        Ok(())
    });
}
