# Proves fastproc on real distribution kernels, in an emulator; included by the Makefile.
#
#   make test-kernels                      every kernel below, thoroughly: what is measured is measured three times, which have to
#                                          agree within 1 %, and the machine with 64 CPUs is booted with each of them
#   make test-kernels KERNELS="6.1 6.12"   these: measured once, and none with 64 CPUs, as one kernel alone is; THOROUGH=yes for more
#   make test-kernels KERNELS="6.12-arm64" that of arm64, with programs that are compiled here; -16k-arm64: with pages of 16 KiB
#   make test-kernels KERNELS="6.12-arm64" SCENARIOS="glance"  the cheapest proof: one comparison by the default source
#   make test-kernels SCENARIOS="hotplug"  only what they do there; tools/kernels/main.py test --help names them
#   make kernels-expected                  write kernels/expected.toml and docs/dev/kernels.md from what the kernels show
#   make kernels-page                      write docs/dev/kernels.md from kernels/expected.toml
#   make fetch-kernels                     only bring them into the cache, with the archive's lists read anew

# Whether what takes long is done on every kernel.
THOROUGH ?= $(if $(filter file,$(origin KERNELS)),yes)

# Packages, kernels and results are kept here, for all clones.
export FASTPROC_KERNELS_CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/fastproc/kernels

# Series of Debian's cloud kernels; “newest” is the newest that the archive offers. A series that kernels/expected.toml has no
# entry for is compared with the next older one, and that is reported: it may gain, and may not lose.
KERNELS ?= 5.10 6.1 6.12 6.18 newest 6.1-arm64 6.12-arm64 6.12-16k-arm64 newest-arm64

# What the guests do; everything if nothing is named.
SCENARIOS ?=

# What those kernels need on this machine.
SETUP_KERNELS = scripts/setup build kernels $(if $(findstring arm64,$(KERNELS)),arm64)

# The program that boots them.
RUN_KERNELS = python3 tools/kernels/main.py

.PHONY: test-kernels kernels-expected kernels-page fetch-kernels
test-kernels:
	$(SETUP_KERNELS)
	$(RUN_KERNELS) test $(if $(THOROUGH),--thorough) $(SCENARIOS:%=--scenario=%) $(KERNELS)

kernels-expected:
	$(SETUP_KERNELS)
	$(RUN_KERNELS) test --update --thorough $(SCENARIOS:%=--scenario=%) $(KERNELS)

kernels-page:
	$(RUN_KERNELS) page

# make cadvisor: the metrics of cgroups beside those of cAdvisor, value by value, and what a scrape of both costs. Needs Go.
.PHONY: cadvisor
cadvisor:
	cd tools/cadvisor && CGO_ENABLED=0 go build -o "$(abspath $(TARGET))/cadvisor" .
	FASTPROC_CADVISOR="$(abspath $(TARGET))/cadvisor" $(MAKE) test-kernels KERNELS=6.12 SCENARIOS=cadvisor
	FASTPROC_CADVISOR="$(abspath $(TARGET))/cadvisor" FASTPROC_GUEST_RELEASE=yes $(MAKE) test-kernels KERNELS=6.12 SCENARIOS=cadvisor_cost

fetch-kernels:
	$(SETUP_KERNELS)
	$(RUN_KERNELS) fetch $(KERNELS)
