# The two commands of the house. Both install what a bare Debian machine lacks
# (scripts/bootstrap.sh).

.PHONY: run test format clean

run: ## build Firn and run it on ./data
	@scripts/run.sh

test: ## everything that a change must pass
	@scripts/test.sh

format: ## lay out the sources
	@scripts/cargo.sh fmt --all

clean: ## remove what was built; ./data stays
	@scripts/cargo.sh clean
