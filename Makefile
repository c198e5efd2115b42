# The two commands a newcomer needs: make demo, make test. Everything else is listed by make help.
.DEFAULT_GOAL := help
.PHONY: help install cluster-demo kind-demo demo start test check unit bench bench-cluster bench-peers simulate soak routes images plugin gen format clean

# Any Node >= 20 with npm installs; the scripts then run on the Node 26 that the lockfile brings.
node_modules/.installed: package.json package-lock.json tools/link-node.cjs
	@echo "installing what is missing (about half a minute)"
	npm ci --no-audit --no-fund --loglevel=error
	@touch $@

install: node_modules/.installed ## install what is missing

cluster-demo: install ## install on the cluster that KUBECONFIG names and show the result: LOAD="command" imports images
	@[ -z "$(LOAD)" ] || npm run --silent images
	@LOAD="$(LOAD)" npm run --silent cluster-demo

kind-demo: install ## the same on kind, for people with Docker (not part of CI, not tested there)
	@command -v kind >/dev/null || { echo "kind is not on PATH: https://kind.sigs.k8s.io"; exit 1; }
	@npm run --silent images
	@kind get clusters 2>/dev/null | grep -qx chancery || kind create cluster --name chancery --config charts/chancery/kind.yaml
	@kind export kubeconfig --name chancery
	@LOAD="kind load image-archive --name chancery" npm run --silent cluster-demo

demo: install ## perform the main journey end to end and verify everything: CHAPTERS=workflow runs a part of it (people, keys, credentials, ledger, workflow, validators)
	@CHAPTERS="$(CHAPTERS)" npm run --silent demo

start: install ## run local mode until Ctrl-C
	@npm start --silent

test: install ## everything that needs no root (about 15 minutes on two cores)
	@npm run --silent test

check: install ## types, lint, formatting, tidy
	@npm run --silent check

unit: install ## the fast tests
	@npm run --silent unit

bench: install ## measure against raw programs of the same run
	@npm run --silent bench

bench-cluster: install ## measure the operator on the cluster that KUBECONFIG names: LOAD="command" imports images
	@npm run --silent images
	@LOAD="$(LOAD)" npm run --silent bench-cluster

bench-peers: install ## measure side by side with CometBFT and Tessera (builds them: needs Go)
	@npm run --silent bench-peers

simulate: install ## seeded worlds of validators, checked after every event: SEEDS=1000 FROM=1
	@npm run --silent simulate -- --seeds $(or $(SEEDS),200) --from $(or $(FROM),1)

soak: install ## the long forms of the tests (hours), with KUBECONFIG also on its cluster: LOAD="command" imports images
	@[ -z "$(KUBECONFIG)" ] || [ -z "$(LOAD)" ] || npm run --silent images
	@LOAD="$(LOAD)" npm run --silent soak

routes: install ## how much of the specification is served
	@npm run --silent routes

images: install ## OCI archives of every process in dist/images, without root or Docker
	@npm run --silent images -- $(NAMES)

plugin: install ## kubectl chancery, in dist/kubectl-chancery
	@npm run --silent plugin

gen: install ## regenerate protos/gen, crds and the chart of the CRDs
	@npm run --silent gen

format: install ## format and fix what can be fixed
	@npm run --silent format

clean: ## remove what was installed and local state
	rm -rf node_modules dist coverage .chancery

help: ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14
