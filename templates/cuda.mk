# @tag@
#
# Where this job finds CUDA.  Each of CUDA_HOME, CUDNN_HOME and NCCL_HOME may name an installation (include/ and lib64/ or lib/)
# or the folder of a Python wheel (site-packages/nvidia/cudnn); without them the usual places are looked at, in this order.
# Wheels may have a toolkit in pieces (cuda_runtime, cublas, cuda_nvcc ...): those beside a folder in nvidia/ count as its own.

ARCH = @arch@
CUDA_ARCHS = $(ARCH)
archs = $(CUDA_ARCHS:sm_%=%)
GENCODE = $(foreach a,$(archs),-gencode arch=compute_$(a),code=sm_$(a))
NEEDS = @needs@

$(foreach v,CUDA_HOME CUDNN_HOME NCCL_HOME,$(if $(word 2,$($(v))),$(error $(v)="$($(v))": make cannot take a folder \
  with a space in its name; give it another by ln -s)))

from_path := $(patsubst %/bin/nvcc,%,$(shell command -v nvcc 2>/dev/null))
in_wheels = $(foreach d,$(1),$(if $(filter nvidia,$(notdir $(d))),$(d),$(filter %/nvidia,$(patsubst %/,%,$(dir $(d))))))
beside = $(1) $(foreach d,$(call in_wheels,$(1)),$(wildcard $(d)/*))
cuda_places := $(call beside,$(patsubst %/,%,$(if $(CUDA_HOME),$(CUDA_HOME),$(CUDA_PATH) $(from_path) \
                 /usr/local/cuda /opt/cuda /usr/lib/cuda /usr)))
cudnn_places := $(if $(CUDNN_HOME),$(call beside,$(CUDNN_HOME:%/=%)),$(cuda_places))
nccl_places := $(if $(NCCL_HOME),$(call beside,$(NCCL_HOME:%/=%)),$(cuda_places))

# $(call place,FILE,PLACES): the first of them that has the file
place = $(firstword $(foreach d,$(2),$(if $(wildcard $(d)/$(1)),$(d))))
# $(call library,NAME,ROOT): its file; wheels have no link without a version
folders = lib64 lib lib/x86_64-linux-gnu lib/aarch64-linux-gnu
library = $(firstword $(foreach d,$(folders),$(wildcard $(2)/$(d)/lib$(1).so) $(wildcard $(2)/$(d)/lib$(1).so.*)))
# $(call want,WHAT,FOUND,FILE,PLACES,VARIABLE)
want = $(if $(2),,$(error no $(1): there is no $(3) in: $(strip $(4)).  Install it, or say make $(5)=FOLDER))

CUDA_ROOT := $(call place,include/cuda_runtime_api.h,$(cuda_places))
NVCC := $(firstword $(wildcard $(addsuffix /bin/nvcc,$(CUDA_ROOT) $(cuda_places))))
CUDNN_ROOT := $(call place,include/cudnn.h,$(cudnn_places))
NCCL_ROOT := $(call place,include/nccl.h,$(nccl_places))
CUDART := $(call library,cudart,$(CUDA_ROOT))
CUBLASLT := $(firstword $(foreach r,$(CUDA_ROOT) $(cuda_places),$(call library,cublasLt,$(r))))
CUDNN := $(call library,cudnn,$(CUDNN_ROOT))
NCCL := $(call library,nccl,$(NCCL_ROOT))

ifneq ($(MAKECMDGOALS),clean)
$(call want,CUDA toolkit,$(CUDA_ROOT),include/cuda_runtime_api.h,$(cuda_places),CUDA_HOME)
$(call want,CUDA compiler,$(NVCC),bin/nvcc,$(cuda_places),CUDA_HOME)
$(call want,CUDA runtime,$(CUDART),libcudart.so under $(folders),$(CUDA_ROOT),CUDA_HOME)
ifneq ($(filter cublasLt,$(NEEDS)),)
$(call want,cuBLAS,$(CUBLASLT),libcublasLt.so under $(folders),$(cuda_places),CUDA_HOME)
endif
ifneq ($(filter cudnn,$(NEEDS)),)
$(call want,cuDNN,$(CUDNN_ROOT),include/cudnn.h,$(cudnn_places),CUDNN_HOME)
$(call want,cuDNN,$(CUDNN),libcudnn.so under $(folders),$(CUDNN_ROOT),CUDNN_HOME)
$(if $(filter 10%,$(archs)),$(error CUDA_ARCHS="$(CUDA_ARCHS)": cuDNN is not proven to give the same bits \
  in every run on sm_$(firstword $(filter 10%,$(archs))).  Generate with compute: f32, or take that chip out))
endif
ifneq ($(filter nccl,$(NEEDS)),)
$(call want,NCCL,$(NCCL_ROOT),include/nccl.h,$(nccl_places),NCCL_HOME)
$(call want,NCCL,$(NCCL),libnccl.so under $(folders),$(NCCL_ROOT),NCCL_HOME)
endif
endif

LINKED := $(CUDART) $(if $(filter cublasLt,$(NEEDS)),$(CUBLASLT)) $(if $(filter cudnn,$(NEEDS)),$(CUDNN)) \
          $(if $(filter nccl,$(NEEDS)),$(NCCL))
comma := ,
# Compilers know /usr/include; named once more, it hides what C++ puts before it.
header_roots = $(foreach h,cuda_runtime_api.h crt/host_config.h nv/target cublasLt.h,$(call place,include/$(h),$(cuda_places)))
HEADERS := $(filter-out /usr/include,$(sort $(addsuffix /include,$(CUDA_ROOT) $(header_roots) $(CUDNN_ROOT) $(NCCL_ROOT))))
CPPFLAGS += -DBUILT_FOR='"$(archs)"' $(addprefix -isystem ,$(HEADERS))
# cuDNN compiles kernels by NVRTC, which opens the rest of itself by name: found by what the program says, if that counts for
# libraries as well (DT_RPATH; what linkers write today, DT_RUNPATH, does not).
nvrtc_in = $(firstword $(foreach r,$(1),$(call library,nvrtc-builtins,$(r))))
NVRTC := $(if $(filter cudnn,$(NEEDS)),$(call nvrtc_in,$(CUDA_ROOT) $(cuda_places)))
LIBS += $(LINKED) -ldl -Wl,--disable-new-dtags \
        $(addprefix -Wl$(comma)-rpath$(comma),$(sort $(patsubst %/,%,$(dir $(LINKED) $(NVRTC)))))

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
