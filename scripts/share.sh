# Sourced by scripts that install or package whit (after env.sh): manual pages, completions and documents.
# shellcheck shell=bash

# Each program that belongs to whit; the command of the same name becomes it.
PROGRAMS=(whit whit-query whit-serve whit-terminal whit-debuginfod whit-watch)
# Each is the package of the same name. whit-reference writes their manual pages: in a build of its own, most crates
# would be built again, with other features.
PROGRAM_PACKAGES=(-p whit-reference)
for program in "${PROGRAMS[@]}"; do PROGRAM_PACKAGES+=(-p "$program"); done

# Manual pages, completions and documents, by the programs in a directory.
# share DIRECTORY BUILT
share() {
    local share=$1 whit=$2/whit
    "$2/whit-reference" man "$share/man/man1"
    gzip -9nf "$share"/man/man1/*.1
    mkdir -p "$share"/{bash-completion/completions,zsh/vendor-completions,fish/vendor_completions.d,doc/whit}
    "$whit" completions bash >"$share/bash-completion/completions/whit"
    "$whit" completions zsh >"$share/zsh/vendor-completions/_whit"
    "$whit" completions fish >"$share/fish/vendor_completions.d/whit.fish"
    cp README.md CHANGELOG.md LICENSE-APACHE LICENSE-MIT docs/privileges.md "$share/doc/whit/"
    # Not among the documents, which minimal systems do not install.
    install -D -m 644 docs/book/src/tutorial/shop.c "$share/whit/examples/shop.c"
    install -D -m 644 -t "$share/whit/watch" deploy/*
}
