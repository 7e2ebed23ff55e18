/* SPDX-License-Identifier: Apache-2.0
 *
 * double.h: the doubles of the CUDA libraries, linked in place of the real ones, so that generated jobs for a GPU run on
 * the CPU.  A double of a library computes when its stream gets to it, and sees device memory only then.
 */
#ifndef DOUBLE_H
#define DOUBLE_H
#include <cuda_runtime_api.h>
#include <stddef.h>

/* Queue work on a stream; args are copied. */
void double_enqueue(cudaStream_t stream, const char *name, void (*run)(void *), const void *args, size_t bytes);
/* Work that waits for another process: step(copy of args) again and again, until it says that it is done. */
void double_poll(cudaStream_t stream, const char *name, _Bool (*step)(void *), const void *args, size_t bytes);
/* Is this stream being captured?  How many graphs are there still? */
_Bool double_captures(cudaStream_t stream);
int double_graphs(void);
/* From now on work is done while no host waits, too. */
void double_go_on(void);
/* The memory behind an address on the device, of which `who` uses so many bytes; ends the program where there is none. */
void *double_host(const void *device, size_t bytes, const char *who);
/* A library takes memory of the GPU at hand. */
enum { LIBRARY = 3 << 20 };
void double_take(size_t bytes);
/* Code of the GPU at hand, known by some bytes, is loaded unless it is.  In a step that ends the program. */
void double_load(const char *who, const void *code, size_t bytes);
extern _Bool double_in_steps;
/* Do copies go from the memory of one GPU to that of the other, not through the host? */
_Bool double_direct(int from, int to);
/* The GPU of this thread.  Where it has chosen none, a call would reach the first one, and the program ends. */
int double_device(const char *who);
/* Has any thread chosen it? */
_Bool double_chosen(int device);
/* The number in a variable of the environment. */
long double_setting(const char *name, long otherwise);
#endif
