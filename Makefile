# The targets of the checkout. Each installs what it lacks (tools/setup.sh) and prints it;
# the build itself is CMakeLists.txt, and everything built lands in out/.

PREFIX ?= /usr/local
CMD ?=
RUNS ?= 10
BUILDS ?=
ARCHITECTURES ?=
COUNT ?= 200
SEED ?= 1

export PATH := $(CURDIR)/.venv/bin:$(PATH)
export PYTHONPATH := $(CURDIR)/lab:$(CURDIR)/python
export PYTHONPYCACHEPREFIX := $(CURDIR)/out/pycache
export TESTED_LIBRARY = $(CURDIR)/out/release/libhakmem.so
export TESTED_BUILD = $(CURDIR)/out/release

.PHONY: help run check test test-slow test-programs faults soak fuzz mutate release bench install uninstall deb wheel docs site answers dist recipes artifacts clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 22

run: ## a program on HAKMEM beside the system's malloc; your own with CMD='prog args'
	@./hakmem compare -n $(RUNS) --allocators hakmem,system $(if $(CMD),-- $(CMD))

TEST_NEEDS := cmake ninja c++ pytest hypothesis lab plots metrics mypy strace bwrap sdt valgrind \
    gdb spin aarch64 musl fuzzer recipes debian site doxygen browser abi

check: ## a minute or two: unit tests, the interface, preloading, the shape of the code
	@tools/setup.sh cmake ninja c++ pytest
	@tools/test.sh check

test: ## all builds and all tests, but for slow ones and real programs; BUILDS=release for one build
	@tools/setup.sh $(TEST_NEEDS)
	@tools/test.sh quick $(BUILDS)

test-slow: ## those that take long, install, make packages or run the laboratory
	@tools/setup.sh $(TEST_NEEDS)
	@tools/test.sh slow $(BUILDS)

test-programs: release ## real programs with HAKMEM preloaded
	@tools/setup.sh c++ pytest programs
	@python3 -m pytest -q -p no:cacheprovider tests/programs

faults: release ## each system call of the allocator fails in turn: the whole list, many minutes
	@tools/setup.sh pytest
	@FAULTS=all python3 -m pytest -q -p no:cacheprovider tests/preload/test_faults.py

SOAK_TESTS := fork_busy thread_churn thread_cancel signals

soak: release ## 100,000 forks, 1,000,000 threads, 40,000 cancelled ones: half an hour
	@for name in $(SOAK_TESTS); do \
	    echo "soak: $$name" && SOAK=1 LD_PRELOAD=$(TESTED_LIBRARY) \
	        out/release/stress_$${name}_preloaded || exit 1; done

fuzz: ## the fuzzers, until one finds something or Ctrl-C; CONTRIBUTING.md says what is found where
	@tools/setup.sh cmake ninja fuzzer
	@tools/build.sh fuzz
	@tests/fuzz/run.sh open

mutate: ## tests of the tests: COUNT=200 one-token mutants of src, SEED=1; takes hours
	@tools/setup.sh cmake ninja c++ pytest strace
	@python3 tools/mutate.py --count $(COUNT) --seed $(SEED) --jobs 2

release: ## out/release: libhakmem.so, libhakmem.a, benchmark programs
	@tools/setup.sh cmake ninja
	@tools/build.sh release

bench: release ## a cell or two of each benchmark family on all allocators: ./hakmem bench has more
	@./hakmem bench --quick

install: release ## into PREFIX (/usr/local), below DESTDIR; DEBUG=1: debug information in a file of its own
	@PREFIX="$(PREFIX)" DESTDIR="$(DESTDIR)" DEBUG="$(DEBUG)" tools/install.sh install

uninstall: ## remove from PREFIX what make install has put there
	@PREFIX="$(PREFIX)" DESTDIR="$(DESTDIR)" tools/install.sh uninstall

deb: ## out/deb: packages for Debian and Ubuntu, of the last commit; ARCHITECTURES='amd64 arm64'
	@tools/setup.sh --must debian $(if $(filter arm64,$(ARCHITECTURES)),aarch64)
	@ARCHITECTURES="$(ARCHITECTURES)" tools/deb.sh

wheel: ## out/wheel: the Python packages, for this processor, for 64-bit Arm and for musl
	@tools/setup.sh pip aarch64 musl
	@python3 tools/wheel.py

docs: ## out/docs: pages made of tables: tuning.md, counted.md, hakmem-options.7
	@mkdir -p out/docs
	@python3 tools/tuning_doc.py > out/docs/tuning.md
	@python3 tools/counts.py > out/docs/counted.md
	@python3 tools/options_doc.py --man > out/docs/hakmem-options.7

site: ## out/site: all pages with search, the interface, and a plot of every measured row
	@tools/setup.sh --must site
	@tools/setup.sh lab plots doxygen
	@python3 tools/site.py
	@echo "site: out/site/index.html"

answers: release ## what tools say of programs with one known problem: the table of docs/profile.md
	@tools/setup.sh c++ cli pytest
	@ANSWERS=tests/answers/answers.csv python3 -m pytest -q -p no:cacheprovider tests/answers
	@python3 tools/tables.py docs/profile.md

dist: ## out/hakmem-VERSION.tar.gz: the last commit and make docs, to be built elsewhere
	@[ -e .git ] || { echo "dist: the archive is made of a commit, and this folder is no git" \
	    "repository: use a clone" >&2; exit 1; }
	@$(MAKE) -s docs
	@touch -d "@$$(git log -1 --format=%ct)" out/docs/*
	@version=$$(sed -n 's/^project(hakmem VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt); \
	git archive --prefix=hakmem-$$version/docs/ $$(printf ' --add-file=%s' out/docs/*) -o out/hakmem-$$version.tar.gz \
	    --prefix=hakmem-$$version/ HEAD && \
	echo out/hakmem-$$version.tar.gz

recipes: dist ## out/recipes: for Conan and RPM; packaging/README.md
	@tools/recipes.sh

artifacts: ## out/artifacts: all of a release, of the last commit, with sums; docs/releasing.md
	@tools/setup.sh --must cmake ninja debian aarch64 musl cargo pip
	@tools/artifacts.sh

clean: ## remove everything that was built
	rm -rf out
