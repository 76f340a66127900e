# Millrace: two commands do everything on a fresh machine with Go:
#   make demo    build, then run the main job on shipped data and show what it wrote
#   make test    build, then run every test

SHELL       := /bin/bash
GO          ?= go
VERSION     ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS     := -s -w -X main.version=$(VERSION)
BIN         := bin/millrace
FUZZTIME    ?= 10s
LONGFUZZ    ?= 1h
EVENTS      ?= 20000

export CGO_ENABLED = 0

.PHONY: help build demo cluster-demo test test-services torture race slt fuzz bench bench-kafka lint fmt docs verify oracle

help: ## show this list
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build the one static binary, bin/millrace
	@mkdir -p bin
	$(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $(BIN) ./cmd/millrace

demo: build ## set up and run the main job: GitHub events into exactly-once tables
	$(BIN) demo --events $(EVENTS)

cluster-demo: build ## the main job into real HDFS, Hive and ClickHouse servers, fetched and started
	$(GO) run ./examples/cluster -millrace $(BIN)

test: build ## run every test that needs Go alone (under 10 minutes on 2 cores)
	$(GO) test -timeout 9m ./...

test-services: build ## tests against readers and servers that are not ours
	@./.ci/services

torture: build ## the long runs: hundreds of kills, every bit flipped, thousands of random queries, hours of fuzz
	MILLRACE_TORTURE=1 MILLRACE_RESTART=1 $(GO) test -timeout 0 -count=1 -v -run 'Torture|Kill|Flip|Flood' ./...
	MILLRACE_TORTURE=1 $(GO) test -timeout 0 -count=1 -v -tags services -run '^TestKilledJobIntoPairs$$' ./cmd/internal/e2e
	MILLRACE_TORTURE=1 ./.ci/services -timeout=0 -v -run='^TestAgreesWithDuckDB$$' ./sql/difftest
	./.ci/fuzz $(LONGFUZZ)

oracle: ## ask the real Flink (needs a JDK 17 and Maven) and store its answers beside the SQL tests
	MILLRACE_ORACLE_RENEW=1 $(GO) test -count=1 -timeout 30m -v -tags services -p 1 -run TestStoredAnswersAreFlinks ./sql/flinktest/ ./examples/nexmark/
	MILLRACE_ORACLE_COVERAGE=1 $(GO) test -count=1 ./sql/flinktest/

race: ## the race detector over the packages that share memory
	CGO_ENABLED=1 $(GO) test -race -timeout 20m ./runtime/... ./storage/... ./jobs/...

slt: ## the SQL logic tests alone
	$(GO) test -count=1 ./sql/logictest/...

fuzz: ## every fuzz target for FUZZTIME each
	@set -e; for p in $$($(GO) list ./...); do \
	  for f in $$($(GO) test -list '^Fuzz' $$p 2>/dev/null | grep '^Fuzz' || true); do \
	    echo "== $$p $$f"; $(GO) test -run '^$$' -fuzz "^$$f$$" -fuzztime $(FUZZTIME) $$p; done; done

bench: ## every benchmark, with the reference implementations beside ours
	$(GO) test -run '^$$' -bench . -benchmem ./...

bench-kafka: build ## the server beside Apache Kafka, with Kafka's own clients; ARGS="-scenario throughput ..."
	$(GO) run ./cmd/internal/kafkabench -millrace $(BIN) $(ARGS)

bench-github: build ## the GitHub job beside the real Flink, from Kafka into HDFS (needs a JDK 17 and Maven; twenty minutes)
	$(GO) run ./examples/github-events/bench -millrace $(BIN) $(GITHUB)

bench-nexmark: build ## the Nexmark queries beside the real Flink, one core each (needs a JDK 17 and Maven; an hour)
	$(GO) run ./examples/nexmark/bench -millrace $(BIN) $(NEXMARK)

lint: ## vet and the repository's own checks
	$(GO) vet ./...
	$(GO) test -count=1 ./cmd/internal/tidy/

fmt: ## format the Go sources
	gofmt -w $$(git ls-files '*.go')

docs: build ## write the generated documentation again
	$(BIN) internal-docs docs

verify: build ## what a reviewer would check by hand: format, vet, layering, generated docs
	@out=$$(gofmt -l $$(git ls-files '*.go')); if [ -n "$$out" ]; then echo "not gofmt'ed:"; echo "$$out"; exit 1; fi
	$(GO) vet ./...
	$(GO) test -count=1 ./cmd/internal/tidy/
