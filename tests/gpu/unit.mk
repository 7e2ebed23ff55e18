# SPDX-License-Identifier: Apache-2.0
# A program beside `train`, with the flags and libraries of an emitted folder:
#   make -C FOLDER -f ROOT/tests/gpu/unit.mk UNIT=NAME ROOT=ROOT SOURCES=... [UFLAGS=...]
include Makefile

%.o: %.cu
	$(NVCC) $(NVFLAGS) $(CPPFLAGS) -c -o $@ $<

$(UNIT): $(filter %.o,$(SOURCES)) .flags.link
	$(CC) $(CPPFLAGS) -I$(ROOT) -DON_GPU $(UFLAGS) $(RFLAGS) -o $@ $(SOURCES) $(LIBS) -lm
