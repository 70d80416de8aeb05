module whit.test/parca

go 1.26.0

require github.com/parca-dev/parca v0.28.0
