# SPDX-License-Identifier: Apache-2.0
# dpgen: make, make demo, make check, make install, make dist.  Rooms from the lowest floor up: tests/floors.
CC = cc
PREFIX = /usr/local
# WERROR=1: a warning is an error; for developers and their tests, whose compilers are known
WARN = -Wall -Wextra -Wpedantic $(if $(WERROR),-Werror)
CFLAGS = -std=c11 -O2 -g1 $(WARN)
CPPFLAGS = -D_POSIX_C_SOURCE=200809L -I. -Igen -Irt
LIBS = -lyaml -lm -ldl
CORES := $(shell getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1)
# make demo DATA="FILE..." learns from these files
DATA =

# Of a room, all of its files
room = $(patsubst %.c,%.o,$(sort $(wildcard gen/$(1)/*.c)))
BASE    := $(call room,base) build/gen/sha256.o build/gen/json.o build/gen/apart.o build/gen/mapped.o
FRONT   := gen/graph.o $(call room,config) $(call room,build) $(call room,rewrite)
TOKENIZER = $(sort $(wildcard rt/tokens/*.c))
TOKENS  := $(TOKENIZER:rt/%.c=build/gen/%.o) $(call room,tokens)
FOREIGN := $(call room,profiled) $(call room,downset)
HF      := $(call room,huggingface) build/gen/place.o
NET     := $(call room,import)
PACK    := $(call room,pack)
COST    := $(call room,cost)
SCHED   := $(call room,sched)
LIST    := $(call room,list)
REPLAY  := $(call room,replay)
LOWER   := $(call room,lower)
FATES   := $(call room,fates)
MEM     := $(call room,mem)
EXACT   := $(call room,exact)
CHECK   := $(call room,check)
RIVALS  := $(call room,rivals)
TEXT    := $(call room,text)
PLAN    := $(call room,plan)
EMIT    := $(call room,emit)
PROFILE := $(call room,profile)
TUNE    := $(call room,tune)
SEARCH  := $(call room,search)
VIEW    := $(call room,view)
# The proof of a folder: no source of gen/, rt/ or tests/.  dpgen calls it in a process of its own.  A folder carries verify/
# without verify/model/, which alone needs a library
PROVER  = $(patsubst %.c,%.o,$(filter-out verify/main.c verify/alone.c,$(sort $(wildcard verify/*.c verify/model/*.c))))
OBJ     = $(BASE) build/embedded.o $(FRONT) $(TOKENS) $(PACK) $(COST) $(SCHED) $(LIST) $(REPLAY) $(LOWER) $(FATES) $(MEM) \
          $(EXACT) $(CHECK) $(RIVALS) $(TEXT) $(PLAN) $(FOREIGN) gen/key.o $(EMIT) $(PROFILE) gen/passes.o $(TUNE) $(SEARCH) \
          $(VIEW) $(NET) $(HF) $(PROVER) gen/options.o gen/main.o

all: dpgen dpgen-verify

# say,VERB: in place of the command; V=1 shows that, make -s neither
silent := $(findstring s,$(filter-out --%,$(firstword -$(MAKEFLAGS))))
say = $(if $(V)$(silent),,echo '  $(1)';)
ifndef V
.SILENT:
endif

dpgen: $(OBJ)
	$(call say,link $@)$(CC) $(LDFLAGS) -o $@ $(OBJ) $(LIBS)

dpgen-verify: $(PROVER) verify/main.o
	$(call say,link $@)$(CC) $(LDFLAGS) -o $@ $(PROVER) verify/main.o $(LIBS)

verify/%.o: verify/%.c $(wildcard verify/*.h verify/*.def verify/model/*.h verify/model/*.def)
	$(call say,compile $<)$(CC) $(CFLAGS) -c -o $@ $<

$(OBJ): $(wildcard gen/*.h gen/*/*.h gen/*.def rt/*.h rt/tokens/*.h)

build/embed: tools/embed.c gen/base/sha1.c rt/sha256.c gen/base.h rt/sha256.h
	mkdir -p build
	$(call say,compile tools/embed.c)$(CC) $(CPPFLAGS) $(CFLAGS) -o $@ $(filter %.c,$^)

EMBED = $(sort $(wildcard templates/* gen/huggingface/*.yaml devices/*.yaml) \
        $(wildcard rt/*.[ch] rt/cuda/*.[ch] rt/cuda/*.cu rt/op/*.[ch] rt/op/*/*.[ch] rt/op/*/*.cu \
        rt/sample/*.[ch] rt/serve/*.c rt/library/*.[ch] rt/tokens/* verify/*.[ch] verify/*.def)) \
        build/rt/op/paced/calls.c build/rt/hooks.h LICENSE
# By content: a file that is moved in may be older
build/embedded.sums: $(EMBED) FORCE
	@cksum $(EMBED) | cmp -s - $@ || cksum $(EMBED) > $@

build/embedded.c: build/embed build/embedded.sums
	$(call say,embed $(words $(EMBED)) files)build/embed $(EMBED) > $@

# Stubs of calls, from ops.def and rt.h: kernels that only wait, adaptors of the interpreter of the tests
build/mkcall: tools/mkcall.c gen/ops.def verify/calls.def verify/elements.def
	@mkdir -p build
	$(call say,compile tools/mkcall.c)$(CC) -I. $(CFLAGS) -o $@ tools/mkcall.c

build/rt/op/paced/calls.c: build/mkcall rt/rt.h
	@mkdir -p $(@D)
	build/mkcall rt/rt.h paced > $@

build/rt/hooks.h: build/mkcall rt/rt.h
	@mkdir -p $(@D)
	build/mkcall rt/rt.h hooks > $@

build/calls.h: build/mkcall rt/rt.h
	build/mkcall rt/rt.h call > $@

build/embedded.o: build/embedded.c
	$(call say,compile build/embedded.c)$(CC) $(CPPFLAGS) -std=c11 -O0 -c -o $@ build/embedded.c

# What jobs and dpgen share, over the memory and the diagnostics of dpgen
build/gen/%.o: rt/%.c $(wildcard rt/*.h rt/tokens/*) gen/base.h build/flags
	@mkdir -p $(@D)
	$(call say,compile $<)$(CC) $(CPPFLAGS) $(CFLAGS) -c -o $@ $<

.c.o:
	$(call say,compile $<)$(CC) $(CPPFLAGS) $(CFLAGS) -c -o $@ $<

# For --version: the commit, where this is a checkout
COMMIT := $(if $(wildcard .git),$(shell git describe --always --dirty --abbrev=12 --exclude='*' 2>/dev/null))
build/commit: FORCE
	@mkdir -p build
	@echo '$(COMMIT)' | cmp -s - $@ || echo '$(COMMIT)' >$@
gen/main.o: build/commit
gen/main.o: private CPPFLAGS += -DCOMMIT='"$(COMMIT)"'

# ---- tests: everything but main() in one archive, and the portable kernels and runtime in another -------------------
KFLAGS = -std=c11 -O2 -ffp-contract=off -fno-math-errno -fno-trapping-math -march=native -Wall -Wextra $(if $(WERROR),-Werror) \
         -Wno-unknown-pragmas
# make check SAN=1: generator, runtime and kernels under the sanitizers of the compiler.  Objects of other flags are made again.
SANITIZE = -fsanitize=address,undefined -fno-sanitize-recover=all
ifneq ($(SAN),)
CFLAGS += $(SANITIZE)
WERROR =                                  # with the checks in, gcc warns of what cannot be
KFLAGS += $(SANITIZE)
LDFLAGS += $(SANITIZE)
endif
# Of tests themselves, whose work is that of the archives
TFLAGS = $(CFLAGS) -O0 -g0
flags = $(filter-out -Werror,$(CC) $(CFLAGS) $(KFLAGS) $(LDFLAGS))
build/flags: FORCE
	@mkdir -p build
	@echo '$(flags)' | cmp -s - $@ || echo '$(flags)' >$@
FORCE:
$(OBJ): $(wildcard gen/*.h gen/*/*.h gen/*.def gen/*/*.def rt/*.h rt/*/*.h rt/*/*.def)

RTSRC  = $(filter-out rt/link_mpi.c,$(wildcard rt/*.c)) $(wildcard rt/sample/*.c rt/serve/*.c) $(TOKENIZER)
OPSRC  = $(wildcard rt/op/*.c)
RTHEAD = $(wildcard rt/*.h rt/op/*.h rt/sample/*.h rt/tokens/*.h)

build/libgen.a: $(filter-out gen/main.o,$(OBJ))
	rm -f $@
	ar qcsD $@ $(filter-out gen/main.o,$(OBJ))

build/f32/%.o: %.c $(RTHEAD) build/flags
	@mkdir -p $(@D)
	$(CC) -D_GNU_SOURCE -I. -Irt -Irt/op -Irt/sample $(KFLAGS) -c -o $@ $<

build/bf16/%.o: %.c $(RTHEAD) build/flags
	@mkdir -p $(@D)
	$(CC) -D_GNU_SOURCE -DREAL_BF16 -I. -Irt -Irt/op -Irt/sample $(KFLAGS) -c -o $@ $<

# Only the kernels compute
$(RTSRC:%.c=build/f32/%.o) $(RTSRC:%.c=build/bf16/%.o): private KFLAGS += -O1

build/librt.a: $(RTSRC:%.c=build/f32/%.o) $(OPSRC:%.c=build/f32/%.o)
	rm -f $@
	ar rcsD $@ $^

build/librt_bf16.a: $(RTSRC:%.c=build/bf16/%.o) $(OPSRC:%.c=build/bf16/%.o)
	rm -f $@
	ar rcsD $@ $^

# Kernels of oneDNN, with what they change of the runtime
ONEDNN = rt/main.c $(wildcard rt/op/onednn/*.c)
$(ONEDNN:%.c=build/onednn/f32/%.o): build/onednn/f32/%.o: %.c $(RTHEAD) $(wildcard rt/op/onednn/*.h) build/flags
	@mkdir -p $(@D)
	$(CC) -D_GNU_SOURCE -I. -Irt -Irt/op $(KFLAGS) -O1 -fopenmp -c -o $@ $<

$(ONEDNN:%.c=build/onednn/bf16/%.o): build/onednn/bf16/%.o: %.c $(RTHEAD) $(wildcard rt/op/onednn/*.h) build/flags
	@mkdir -p $(@D)
	$(CC) -D_GNU_SOURCE -DREAL_BF16 -I. -Irt -Irt/op $(KFLAGS) -O1 -fopenmp -c -o $@ $<

build/onednn_f32.o: $(ONEDNN:%.c=build/onednn/f32/%.o)
	ld -r -o $@ $^

build/onednn_bf16.o: $(ONEDNN:%.c=build/onednn/bf16/%.o)
	ld -r -o $@ $^

build/unit_rt_%: tests/unit_rt_%.c build/librt.a
	$(CC) -D_GNU_SOURCE -I. -Irt -Irt/sample $(TFLAGS) -o $@ $< build/librt.a -lpthread -lm

build/unit_math: tests/unit_math.c build/librt.a
	$(CC) -I. -Irt -ffp-contract=off $(TFLAGS) -o $@ $< build/librt.a -lm

build/unit_%: tests/unit_%.c build/libgen.a
	$(CC) $(CPPFLAGS) $(TFLAGS) -o $@ $< build/libgen.a $(LIBS)

# The graph interpreter, once a compute type
build/interp: tests/interp.c build/calls.h build/libgen.a build/librt.a
	$(CC) $(CPPFLAGS) -Ibuild $(TFLAGS) -o $@ tests/interp.c build/libgen.a build/librt.a $(LIBS) -lpthread

build/interp_bf16: tests/interp.c build/calls.h build/libgen.a build/librt_bf16.a
	$(CC) $(CPPFLAGS) -DREAL_BF16 -Ibuild $(TFLAGS) -o $@ tests/interp.c build/libgen.a build/librt_bf16.a $(LIBS) -lpthread

# clang is the faster one for references and for kernels of GPUs, to compile and to run
FASTCC := $(if $(SAN),$(CC),$(shell command -v clang || echo $(CC)))
FASTCXX := $(shell command -v clang++ || echo $(CXX))
# The axes of the table, against the portable kernels
build/axes: tests/axes.c tests/axes_order.h build/calls.h build/libgen.a build/librt.a
	$(CC) $(CPPFLAGS) -Ibuild $(TFLAGS) -o $@ tests/axes.c build/libgen.a build/librt.a $(LIBS) -lpthread

build/axes_bf16: tests/axes.c tests/axes_order.h build/calls.h build/libgen.a build/librt_bf16.a
	$(CC) $(CPPFLAGS) -DREAL_BF16 -Ibuild $(TFLAGS) -o $@ tests/axes.c build/libgen.a build/librt_bf16.a $(LIBS) -lpthread

# Each check is compiled once a type, for the portable kernels and for those of GPUs
OPCHECK = $(patsubst tests/%.c,%,$(wildcard tests/opcheck_*.c))
OPFLAGS = -D_GNU_SOURCE -I. -Irt $(CFLAGS) -O1 -g0
$(OPCHECK:%=build/f32/%.o): build/f32/%.o: tests/%.c tests/opcheck.h tests/eight.h rt/rt.h rt/real.h build/flags
	@mkdir -p $(@D)
	$(FASTCC) $(OPFLAGS) -c -o $@ $<

$(OPCHECK:%=build/bf16/%.o): build/bf16/%.o: tests/%.c tests/opcheck.h tests/eight.h rt/rt.h rt/real.h build/flags
	@mkdir -p $(@D)
	$(FASTCC) $(OPFLAGS) -DREAL_BF16 -c -o $@ $<

build/opcheck: tests/opcheck.c $(OPCHECK:%=build/f32/%.o) build/librt.a
	$(FASTCC) $(OPFLAGS) -o $@ $^ -lm

# Another kernel library: its files, and the portable ones that it does not replace
build/opcheck_%: tests/opcheck.c $(OPCHECK:%=build/f32/%.o) build/librt.a FORCE
	$(CC) -D_GNU_SOURCE -Irt/op -Irt -I. $(KFLAGS) -o $@ $(wildcard rt/op/$*/*.c) $(filter-out FORCE,$^) -lm

build/opcheck_bf16: tests/opcheck.c $(OPCHECK:%=build/bf16/%.o) build/librt_bf16.a
	$(FASTCC) $(OPFLAGS) -DREAL_BF16 -o $@ $^ -lm

# Our own kernels for GPUs, on the CPU: the same sources in one unit, as jobs build them, compiled as C++ over tests/simt
SIMTSRC  = $(wildcard rt/op/cuda/*.cu rt/cuda/*.cu)
SIMTHEAD = $(wildcard rt/*.h rt/op/cuda/*.h) tests/simt/simt.h
SIMTFLAGS = -std=c++17 -O1 -march=native -ffp-contract=off -fno-exceptions -fno-rtti -fno-strict-aliasing -Wall -Wextra \
            $(if $(WERROR),-Werror) -I. -Itests/simt
SIMTCHECK = tests/simt/calls.c tests/simt/now.c tests/simt/opcheck_fold.c rt/number.c

build/simt.o: tests/simt/simt.cc tests/simt/simt.h
	@mkdir -p build
	$(CXX) $(SIMTFLAGS) -O2 -c -o $@ $<

build/kernels.cc: $(SIMTSRC)
	@mkdir -p build
	for i in $(SIMTSRC); do echo "#include \"$$i\""; done > $@

build/kernels.o: build/kernels.cc $(SIMTSRC) $(SIMTHEAD)
	$(FASTCXX) $(SIMTFLAGS) -c -o $@ $<

build/kernels_bf16.o: build/kernels.cc $(SIMTSRC) $(SIMTHEAD)
	$(FASTCXX) $(SIMTFLAGS) -DREAL_BF16 -c -o $@ $<

# Calls that GPUs have not: their checks ask folds() first.
GPULACKS = batchnorm_clip_forward batchnorm_clip_backward batchnorm_silu_forward batchnorm_silu_backward \
	linear_pieces_backward_x linear_columns_backward_x linear_rows_forward \
	norm_team linear_positions_backward_w rows_to_heads heads_to_rows linear_xent_part_forward \
	linear_xent_part_hits_forward linear_xent_part_backward linear_columns_scatter_x linear_rows_scatter_forward \
	linear_quantized_forward linear_quantized_backward_x output_put
build/opcheck_simt: tests/opcheck.c $(SIMTCHECK) $(OPCHECK:%=build/f32/%.o) build/kernels.o build/simt.o
	$(FASTCC) $(OPFLAGS) -DFOLDS -o $@ $^ $(GPULACKS:%=-Wl,--defsym=%=folds) -lstdc++ -lm

build/opcheck_simt_bf16: tests/opcheck.c $(SIMTCHECK) $(OPCHECK:%=build/bf16/%.o) build/kernels_bf16.o build/simt.o
	$(FASTCC) $(OPFLAGS) -DFOLDS -DREAL_BF16 -o $@ $^ $(GPULACKS:%=-Wl,--defsym=%=folds) -lstdc++ -lm

build/unit_simt: tests/unit_simt.cc build/simt.o $(SIMTHEAD)
	$(CXX) $(SIMTFLAGS) -o $@ $< build/simt.o -lm

# A job whose calls mix bits: the second opinion on what dpgen-verify says
build/twin_calls.h: tests/verify_twin.awk verify/calls.def verify/elements.def rt/rt.h
	@mkdir -p build
	cat verify/calls.def verify/elements.def | awk -f tests/verify_twin.awk - rt/rt.h > $@
build/verify_twin.o: tests/verify_twin.c tests/verify_twin_run.h build/twin_calls.h rt/rt.h rt/job.h
	$(CC) -Ibuild -I. -Irt -Irt/op $(CFLAGS) -O2 -c -o $@ tests/verify_twin.c

build/emitted: tests/emitted_damage.h tests/emitted_words.h tests/emitted_names.h tests/emitted_call.h tests/emitted_table.h
build/emitted build/compare: build/%: tests/%.c
	@mkdir -p build
	$(CC) -D_POSIX_C_SOURCE=200809L $(TFLAGS) -o $@ $< -lm

build/fuzz: tests/fuzz.c tests/fuzz_ops.c tests/fuzz_language.c tests/fuzz_images.c tests/fuzz.h
	@mkdir -p build
	$(CC) -Itests $(TFLAGS) -o $@ tests/fuzz.c tests/fuzz_ops.c tests/fuzz_language.c tests/fuzz_images.c

build/fuzz_jobs: tests/fuzz_jobs.c build/libgen.a
	$(CC) $(CPPFLAGS) $(TFLAGS) -o $@ tests/fuzz_jobs.c build/libgen.a $(LIBS)

# ---- readers under sanitizers: tests/fuzz_targets/NAME.c as build/san/NAME, which replays files; or with FUZZER=1 as
# build/fuzzer/NAME, in which clang's fuzzer makes new inputs ------------------------------------------------------------
FUZZ_GEN = yaml option graph plan foreign profile pack log trace table tokens onnx pt2 config llmc chat
FUZZ_RT = json safetensors data megatron index shards
FUZZ_ALONE = folder
FUZZED = $(BASE) $(FRONT) $(TOKENS) $(PACK) $(COST) $(SCHED) $(LIST) $(LOWER) $(CHECK) $(TEXT) $(FOREIGN) \
         $(NET) $(HF) gen/emit/page.o gen/view/events.o gen/view/measured.o gen/view/metrics.o gen/view/tfevents.o
FUZZHEAD = $(wildcard tests/fuzz_targets/*.h)
# A replay has the readers under the checks, and what computes with what was read as it is compiled already
ifeq ($(FUZZER)$(SAN),)
FUZZ_ALL = $(filter-out $(SCHED) $(LIST) $(LOWER),$(FUZZED))
FUZZ_RTSRC = $(addprefix rt/,$(addsuffix .c,apart ckpt_list ckpt_load items json mapped number place safetensors \
             text weights)) $(wildcard rt/data*.c)
$(FUZZ_GEN:%=build/san/%): build/libgen.a
$(FUZZ_RT:%=build/san/%): build/librt.a
else
FUZZ_ALL = $(FUZZED)
FUZZ_RTSRC = $(RTSRC)
endif
S = $(if $(FUZZER),build/fuzzer,build/san)
SANBY := $(shell command -v clang || echo $(CC))       # clang compiles with these checks in two thirds of the time
# Checks of each pointer are half of what is compiled; the fuzzer and SAN=1 have them, and a replay stops at a bad address too
SANCC = $(if $(FUZZER),clang -O1 -g1 $(SANITIZE) -fsanitize=fuzzer-no-link,$(SANBY) -O0 $(SANITIZE) $(SANFEW)) -std=c11 \
        -DFUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
SANFEW = -fno-sanitize=null,alignment,pointer-overflow
SANMAIN = $(if $(FUZZER),-fsanitize=fuzzer,tests/fuzz_targets/replay.c)
SANLD = $(SANCC)        # packaging/oss-fuzz has compiler, linker and engine of its own
WRAP = -Wl,--wrap=exit

$S/gen/%.o: gen/%.c $(wildcard gen/*.h gen/*/*.h gen/*.def)
	@mkdir -p $(@D)
	$(SANCC) $(CPPFLAGS) -c -o $@ $<

$S/build/gen/%.o: rt/%.c $(RTHEAD)
	@mkdir -p $(@D)
	$(SANCC) $(CPPFLAGS) -c -o $@ $<

$S/rt/%.o: rt/%.c $(RTHEAD)
	@mkdir -p $(@D)
	$(SANCC) -D_GNU_SOURCE -I. -Irt -Irt/sample -c -o $@ $<

$S/libgen.a: $(FUZZ_ALL:%=$S/%) build/embedded.o
	rm -f $@
	ar qcsD $@ $^

$S/librt.a: $(FUZZ_RTSRC:%.c=$S/%.o)
	rm -f $@
	ar qcsD $@ $^

$(FUZZ_GEN:%=$S/%): $S/%: tests/fuzz_targets/%.c tests/fuzz_targets/replay.c $S/libgen.a $(FUZZHEAD)
	$(SANCC) $(CPPFLAGS) $(WARN) -c -o $@.o $<
	$(SANLD) $(WRAP) -o $@ $@.o $(SANMAIN) $S/libgen.a $(filter build/lib%,$^) $(LIBS)

$S/yaml: WRAP += -Wl,--wrap=yaml_parser_initialize,--wrap=yaml_parser_delete

$(FUZZ_RT:%=$S/%): $S/%: tests/fuzz_targets/%.c tests/fuzz_targets/replay.c $S/librt.a $(FUZZHEAD)
	$(SANCC) -D_GNU_SOURCE -I. -Irt $(WARN) -c -o $@.o $<
	$(SANLD) -o $@ $@.o $(SANMAIN) $S/librt.a $(filter build/lib%,$^) -lm -lpthread

$S/verify/%.o: verify/%.c $(wildcard verify/*.h verify/*.def verify/model/*.h verify/model/*.def)
	@mkdir -p $(@D)
	$(SANCC) -c -o $@ $<

$(FUZZ_ALONE:%=$S/%): $S/%: tests/fuzz_targets/%.c tests/fuzz_targets/replay.c $(PROVER:%=$S/%) $(FUZZHEAD)
	$(SANCC) $(CPPFLAGS) $(WARN) -c -o $@.o $<
	$(SANLD) -Wl,--wrap=_Exit -o $@ $@.o $(SANMAIN) $(PROVER:%=$S/%) $(LIBS)

fuzz-targets: $(FUZZ_GEN:%=$S/%) $(FUZZ_RT:%=$S/%) $(FUZZ_ALONE:%=$S/%)

# Packages that are missing: said, then installed where apt may be used; NO_INSTALL=1 names them only
deps:
	tools/deps tests

demo:
	tools/deps
	@echo "demo: building dpgen"
	@$(MAKE) -s -j$(CORES) dpgen
	@tools/demo $(DATA)

# The tests in five minutes; the others in their short forms; all in their long ones
check check-rest check-slow: export WERROR = 1
check-rest: export REST = 1
check-slow: export SLOW = 1
check check-rest check-slow:
	tools/deps tests
	$(MAKE) -j$(CORES) dpgen
	tests/run

# The kit for a machine with a GPU, and its visit, where this is one.  It is made elsewhere too: tests/gpu/pack.sh build/gpu
build/gpu/kit.tar.xz:
	$(MAKE) dpgen
	tests/gpu/pack.sh build/gpu

gpu-check: build/gpu/kit.tar.xz
	build/gpu/kit/visit.sh -o build/gpu/results

# ---- make install: PREFIX is where it is found, DESTDIR what stands in front while a package is made.  Both may have blanks:
# recipes take them from the environment ---------------------------------------------------------------------------------
VERSION := $(shell sed -n 's/^.define DPGEN_VERSION "\(.*\)"/\1/p' gen/version.h)
install uninstall installcheck: export DESTDIR := $(DESTDIR)
install uninstall installcheck: export PREFIX := $(PREFIX)

build/dpgen-model.5: docs/model.md tools/man.awk gen/version.h
	@mkdir -p build
	awk -v version=$(VERSION) -f tools/man.awk docs/model.md > $@

# Words of the manual page that depend on where it is installed: tools/install
build/options.1: docs/man/dpgen.1 tools/options.awk gen/options.def gen/schedules.def
	@mkdir -p build
	awk -f tools/options.awk gen/schedules.def gen/options.def docs/man/dpgen.1 > $@

build/dpgen.bash build/_dpgen: $(wildcard completion/*)
	@mkdir -p build
	cat completion/words.sh completion/bash > build/dpgen.bash
	{ echo '#compdef dpgen train sample'; cat completion/words.sh completion/zsh; } > build/_dpgen

install: dpgen dpgen-verify build/options.1 build/dpgen-model.5 build/dpgen.bash build/_dpgen
	tools/install

# What is dpgen's alone goes; a folder that others use as well stays
uninstall:
	tools/install --undo

# The installed dpgen, from another folder, on its installed example: plan, generate, build, three steps
installcheck:
	tools/installcheck

# build/dist/: the source of the commit as an archive, the same bytes from every checkout, and its sum
dist:
	tools/dist $(VERSION) build/dist

clean:
	rm -rf build dpgen dpgen-verify $(OBJ) verify/main.o

.PHONY: all deps fuzz-targets demo check check-rest check-slow gpu-check install uninstall installcheck dist \
        clean
.SUFFIXES: .c .o
