/* SPDX-License-Identifier: Apache-2.0
 *
 * stubcuda.c: a libcuda.so.1 where there is no driver, for planning with cuDNN for a chip that is only described.
 *
 * cuDNN compiles its attention kernels while it plans and loads what comes out, so it asks for a driver even without a GPU.
 * It must find these symbols.  Loading a library and taking a kernel out of it succeed, with an address that is never used;
 * whatever would reach a GPU answers CUDA_ERROR_STUB_LIBRARY.
 */
enum { STUB_LIBRARY = 34 };
static int some;

#define FINE(name) int name(void); int name(void) { return 0; }
#define NEVER(name) int name(void); int name(void) { return STUB_LIBRARY; }

int cuLibraryLoadData(void **library);
int cuLibraryLoadData(void **library) { *library = &some; return 0; }
int cuLibraryGetKernel(void **kernel);
int cuLibraryGetKernel(void **kernel) { *kernel = &some; return 0; }

FINE(cuLibraryLoadFromFile)
FINE(cuLibraryUnload)
FINE(cuKernelGetAttribute)
FINE(cuKernelSetAttribute)

NEVER(cuCtxGetCurrent)
NEVER(cuCtxGetLimit)
NEVER(cuCtxPopCurrent)
NEVER(cuCtxPushCurrent)
NEVER(cuDeviceGet)
NEVER(cuDeviceGetCount)
NEVER(cuDriverGetVersion)
NEVER(cuGetErrorName)
NEVER(cuGetErrorString)
NEVER(cuLaunchCooperativeKernel)
NEVER(cuLaunchKernel)
NEVER(cuLaunchKernelEx)
NEVER(cuLinkAddData)
NEVER(cuLinkComplete)
NEVER(cuLinkCreate)
NEVER(cuLinkDestroy)
NEVER(cuOccupancyMaxPotentialClusterSize)
NEVER(cuStreamGetCtx)
