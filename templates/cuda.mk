# @tag@
#
# Where this job finds CUDA.  Each of CUDA_HOME, CUBLAS_HOME, CUDNN_HOME and NCCL_HOME may name an installation (include/ and
# lib64/ or lib/) or the folder of a Python wheel (site-packages/nvidia/cudnn); wheels may have a toolkit in pieces
# (cuda_runtime, cublas, cuda_nvcc ...), so those beside a folder in nvidia/ count as its own.  A library whose variable is not
# set may be in any place: that of CUDA_HOME, else $CUDA_PATH, beside the nvcc of PATH and CUDA_PLACES; then those of the other
# variables, and last the wheels that python3 knows.

ARCH = @arch@
CUDA_ARCHS = $(ARCH)
archs = $(CUDA_ARCHS:sm_%=%)
GENCODE = $(foreach a,$(archs),-gencode arch=compute_$(a),code=sm_$(a))
NEEDS = @needs@

$(foreach v,CUDA_HOME CUBLAS_HOME CUDNN_HOME NCCL_HOME,$(if $(word 2,$($(v))),$(error $(v)="$($(v))": make cannot take \
  a folder with a space in its name; give it another by ln -s)))

CUDA_PLACES = /usr/local/cuda /opt/cuda /usr/lib/cuda /usr
nvcc_of_path := $(shell command -v nvcc 2>/dev/null)
in_wheels = $(foreach d,$(1),$(if $(filter nvidia,$(notdir $(d))),$(d),$(filter %/nvidia,$(patsubst %/,%,$(dir $(d))))))
beside = $(patsubst %/,%,$(1)) $(foreach d,$(call in_wheels,$(patsubst %/,%,$(1))),$(wildcard $(d)/*))
usual := $(call beside,$(CUDA_PATH) $(nvcc_of_path:/bin/nvcc=) $(CUDA_PLACES))
cuda_places := $(if $(CUDA_HOME),$(call beside,$(CUDA_HOME)),$(usual))
# asked for once, and only where all else has failed
wheels = $(eval wheels := $(call beside,$(shell python3 -c 'import nvidia; print(*nvidia.__path__)' 2>/dev/null)))$(wheels)
others = $(filter-out $(cuda_places),$(call beside,$(CUBLAS_HOME) $(CUDNN_HOME) $(NCCL_HOME)) $(usual)) $(wheels)

# $(call place,FILE,PLACES): the first of them that has the file
place = $(firstword $(foreach d,$(2),$(if $(wildcard $(d)/$(1)),$(d))))
# $(call places,HOME): where to look; $(call root,FILE,HOME): where it is
places = $(if $(1),$(call beside,$(1)),$(cuda_places) $(others))
root = $(or $(call place,$(1),$(if $(2),$(call beside,$(2)),$(cuda_places))),$(if $(2),,$(call place,$(1),$(others))))
# $(call library,NAME,ROOT): its file; wheels have no link without a version
folders = lib64 lib lib/x86_64-linux-gnu lib/aarch64-linux-gnu
library = $(firstword $(foreach d,$(folders),$(wildcard $(2)/$(d)/lib$(1).so) $(wildcard $(2)/$(d)/lib$(1).so.*)))
# $(call want,WHAT,FOUND,FILE,PLACES,VARIABLE)
want = $(if $(2),,$(error no $(1): there is no $(3) in: $(strip $(4)).  Install it, or say make $(5)=FOLDER))

CUDA_ROOT := $(call root,include/cuda_runtime_api.h,$(CUDA_HOME))
NVCC := $(firstword $(wildcard $(addsuffix /bin/nvcc,$(CUDA_ROOT) $(cuda_places))) $(nvcc_of_path) \
          $(wildcard $(addsuffix /bin/nvcc,$(usual))))
CUBLAS_ROOT := $(if $(filter cublasLt,$(NEEDS)),$(call root,include/cublasLt.h,$(CUBLAS_HOME)))
CUDNN_ROOT := $(if $(filter cudnn,$(NEEDS)),$(call root,include/cudnn.h,$(CUDNN_HOME)))
NCCL_ROOT := $(if $(filter nccl,$(NEEDS)),$(call root,include/nccl.h,$(NCCL_HOME)))
CUDART := $(call library,cudart,$(CUDA_ROOT))
CUBLASLT := $(call library,cublasLt,$(CUBLAS_ROOT))
CUDNN := $(call library,cudnn,$(CUDNN_ROOT))
NCCL := $(call library,nccl,$(NCCL_ROOT))

ifneq ($(filter-out clean proof,$(or $(MAKECMDGOALS),all)),)
$(call want,CUDA toolkit,$(CUDA_ROOT),include/cuda_runtime_api.h,$(call places,$(CUDA_HOME)),CUDA_HOME)
$(call want,CUDA compiler,$(NVCC),bin/nvcc,$(cuda_places) and PATH,NVCC)
$(call want,CUDA runtime,$(CUDART),libcudart.so under $(folders),$(CUDA_ROOT),CUDA_HOME)
ifneq ($(filter cublasLt,$(NEEDS)),)
$(call want,cuBLAS,$(CUBLAS_ROOT),include/cublasLt.h,$(call places,$(CUBLAS_HOME)),CUBLAS_HOME)
$(call want,cuBLAS,$(CUBLASLT),libcublasLt.so under $(folders),$(CUBLAS_ROOT),CUBLAS_HOME)
endif
ifneq ($(filter cudnn,$(NEEDS)),)
$(call want,cuDNN,$(CUDNN_ROOT),include/cudnn.h,$(call places,$(CUDNN_HOME)),CUDNN_HOME)
$(call want,cuDNN,$(CUDNN),libcudnn.so under $(folders),$(CUDNN_ROOT),CUDNN_HOME)
unproven := $(filter 10% 11% 12%,$(archs))
$(if $(unproven),$(error CUDA_ARCHS="$(CUDA_ARCHS)": cuDNN is not proven to give the same bits \
  in every run on sm_$(firstword $(unproven)).  Generate with arch: sm_$(firstword $(unproven)), or take that chip out))
endif
ifneq ($(filter nccl,$(NEEDS)),)
$(call want,NCCL,$(NCCL_ROOT),include/nccl.h,$(call places,$(NCCL_HOME)),NCCL_HOME)
$(call want,NCCL,$(NCCL),libnccl.so under $(folders),$(NCCL_ROOT),NCCL_HOME)
endif
endif

LINKED := $(CUDART) $(if $(filter cublasLt,$(NEEDS)),$(CUBLASLT)) $(if $(filter cudnn,$(NEEDS)),$(CUDNN)) \
          $(if $(filter nccl,$(NEEDS)),$(NCCL))
comma := ,
# Compilers know /usr/include; named once more, it hides what C++ puts before it.  What stands first counts: the toolkit's own.
header_roots = $(foreach h,crt/host_config.h nv/target,$(call root,include/$(h),$(CUDA_HOME)))
once = $(if $(1),$(firstword $(1)) $(call once,$(filter-out $(firstword $(1)),$(1))))
HEADERS := $(filter-out /usr/include,$(call once,$(addsuffix /include,$(CUDA_ROOT) $(header_roots) $(CUBLAS_ROOT) \
             $(CUDNN_ROOT) $(NCCL_ROOT))))
CPPFLAGS += -DBUILT_FOR='"$(archs)"' $(addprefix -isystem ,$(HEADERS))
# cuDNN compiles kernels by NVRTC, which opens the rest of itself by name: found by what the program says, if that counts for
# libraries as well (DT_RPATH; what linkers write today, DT_RUNPATH, does not).
nvrtc_in = $(firstword $(foreach r,$(1),$(call library,nvrtc-builtins,$(r))))
NVRTC := $(if $(filter cudnn,$(NEEDS)),$(call nvrtc_in,$(CUDA_ROOT) $(cuda_places) $(others)))
# make RPATH=: a program that is carried elsewhere, and finds them by LD_LIBRARY_PATH
RPATH := -Wl,--disable-new-dtags $(addprefix -Wl$(comma)-rpath$(comma),$(sort $(patsubst %/,%,$(dir $(LINKED) $(NVRTC)))))
LIBS += $(LINKED) -ldl $(RPATH)

# Kernels in one go: their headers take longer than they do.  Host code in C++ without its run-time library.
NVFLAGS = -O3 -std=c++17 $(GENCODE) -Xcompiler -fno-exceptions,-fno-threadsafe-statics,-fno-asynchronous-unwind-tables

kernels.o: kernels.cu $(wildcard rt/*.h rt/cuda/*.h rt/op/cuda/*.h) @kernels@
	$(call say,compile $<) $(NVCC) $(NVFLAGS) $(CPPFLAGS) -c -o $@ $<

rt/op/cuda/%.o: rt/op/cuda/%.c
	$(call say,compile $<) $(CC) $(CPPFLAGS) $(RFLAGS) $(DEPEND) -c -o $@ $<

# What the program is linked with, as the loader will look for it; of an object, what to link it with
needed: all
	@if [ -e train ]; then objdump -p train | sed -n 's/^ *NEEDED *//p'; else echo '$(LIBS)'; fi

.PHONY: needed
