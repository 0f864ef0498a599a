# Fencepost's tasks. `make help` explains them. Each works on a bare Debian or Ubuntu machine with Go, make, and root or sudo;
# macOS with Homebrew has only been compiled for.

SHELL := /bin/sh

# What may be set on the command line.
TAGS      ?= lock
FUZZTIME  ?= 30s
HISTORIES ?= 1000000
BENCH     ?= .
RACE      ?= ./...

GO      ?= go
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null)
STAMP   := $(shell date +%Y%m%d-%H%M%S)

# Static, so that bin/bench can be copied to another machine and into an empty image.
BUILD := CGO_ENABLED=0 $(GO) build -trimpath -ldflags "-X fencepost.dev/harness.version=$(VERSION)"

.PHONY: help setup build demo test race scenarios kill9 ten lint bench fuzz test-setup clean
.DEFAULT_GOAL := help

help: ## this list
	@echo "make TARGET, where TARGET is one of"
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## install what is missing: a Valkey server, a C compiler, CA certificates (with sudo if you are not root)
	@sh setup/setup.sh

build: ## bin/bench and bin/chaos
	@command -v $(GO) >/dev/null || { echo "make: Go is not on PATH: install Go 1.26 or later from your system or go.dev" >&2; exit 1; }
	@mkdir -p bin
	$(BUILD) -o bin/ ./cmd/bench ./cmd/chaos

demo: setup build ## see a lock fail under a pause, and its fenced version hold
	bin/bench demo

test: setup build race kill9 scenarios ## all tests: Go's with the race detector, then killed runners, every scenario and its control without

race: setup ## Go's tests with the race detector (RACE=./history/... for some)
	CGO_ENABLED=1 $(GO) test -race -timeout 40m $(RACE)

scenarios: setup build ## every scenario and its control, from the built binary, into results/
	bin/bench verify --controls --out results/verify-$(STAMP)

kill9: setup build ## kill runners with SIGKILL at random moments and look for what they leave
	CGO_ENABLED=0 $(GO) test -count=1 -v -run 'Kill' ./process ./topology ./harness

ten: setup build ## each scenario ten times, as expected ten of ten (TAGS=lock)
	bin/bench verify --repeat 10 --tags $(TAGS) --out results/ten-$(STAMP)

lint: ## gofmt, vet and staticcheck for Linux and macOS, go mod tidy, shell syntax
	@unformatted=$$(gofmt -l .); if [ -n "$$unformatted" ]; then echo "not formatted (run gofmt -w):"; echo "$$unformatted"; exit 1; fi
	$(GO) vet ./...
	GOOS=darwin $(GO) vet ./...
	$(GO) tool staticcheck ./...
	GOOS=darwin $$($(GO) tool -n staticcheck) ./...
	$(GO) mod tidy -diff
	@for script in setup/*.sh; do sh -n $$script || exit 1; done
	@bash -n .ci/run

# A benchmark joins the table by being one: its own figures (b.ReportMetric) become columns of its line.
bench: ## run the benchmarks and print them as a table (BENCH=Record for some)
	@$(GO) test -run '^$$' -bench '$(BENCH)' -benchmem ./... | awk -f setup/bench.awk

fuzz: ## each fuzz target for FUZZTIME (30s), then the property tests of models with HISTORIES (1000000) histories
	@grep -rEo --include='*_test.go' '^func Fuzz[A-Za-z0-9_]+' . | sed -E 's|^(.*)/[^/]*:func (.*)|\1 \2|' | sort | \
	while read -r package target; do \
		echo "$(GO) test -run '^$$' -fuzz '^'$$target'$$' -fuzztime $(FUZZTIME) $$package"; \
		$(GO) test -run '^$$' -fuzz '^'$$target'$$' -fuzztime $(FUZZTIME) $$package || exit 1; \
	done
	FENCEPOST_HISTORIES=$(HISTORIES) $(GO) test -count=1 -timeout 4h ./models/...

test-setup: ## try setup on bare Debian 12 and 13 (needs root and debootstrap; some minutes)
	sh setup/test.sh

clean: ## remove bin/ and results/
	rm -rf bin results
