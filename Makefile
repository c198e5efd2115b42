# The two commands a newcomer needs: make demo, make test. Everything else is listed by make help.
.DEFAULT_GOAL := help
.PHONY: help install demo start test check unit bench simulate soak routes gen format clean

# Any Node >= 20 with npm installs; the scripts then run on the Node 26 that the lockfile brings.
node_modules/.installed: package.json package-lock.json tools/link-node.cjs
	@echo "installing what is missing (about half a minute)"
	npm ci --no-audit --no-fund --loglevel=error
	@touch $@

install: node_modules/.installed ## install what is missing

demo: install ## walk the main job end to end and verify everything
	@npm run --silent demo

start: install ## run local mode until Ctrl-C
	@npm start --silent

test: install ## everything that needs no root (10 minutes at most)
	@npm run --silent test

check: install ## types, lint, formatting, tidy
	@npm run --silent check

unit: install ## the fast tests
	@npm run --silent unit

bench: install ## measure against raw programs of the same run
	@npm run --silent bench

simulate: install ## seeded worlds of validators, judged after every event: SEEDS=1000 FROM=1
	@npm run --silent simulate -- --seeds $(or $(SEEDS),200) --from $(or $(FROM),1)

soak: install ## the long forms of the tests
	@npm run --silent soak

routes: install ## how much of the specification is served
	@npm run --silent routes

gen: install ## regenerate protos/gen
	@npm run --silent gen

format: install ## format and fix what can be fixed
	@npm run --silent format

clean: ## remove what was installed and local state
	rm -rf node_modules dist coverage .chancery

help: ## this list
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12
