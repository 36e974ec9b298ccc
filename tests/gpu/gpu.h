/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Memory of the host's, of a GPU's, and managed memory that lies where it is used, behind the same few functions; for programs that are compiled
 * where there is neither a GPU nor CUDA: the driver's library is opened when the program runs.
 *
 * Memory is to be made after UCX's contexts: UCX 1.13 knows of none that is older (its cache of memory types sees the calls that make it).
 */
#ifndef UCI_TESTS_GPU_GPU_H_
#define UCI_TESTS_GPU_GPU_H_

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum { GPU_HOST, GPU_DEVICE, GPU_MANAGED, GPU_KINDS } gpu_kind_t;

static const char *const gpu_kind_names[GPU_KINDS] = {"host", "device", "managed"};

/* CUDA's driver interface, as far as it is used; 0 is success in each */
static struct {
    int (*init)(unsigned flags);
    int (*device_get)(int *device, int ordinal);
    int (*context_retain)(void **context, int device);
    int (*context_set)(void *context);
    int (*alloc)(unsigned long long *address, size_t length);
    int (*alloc_managed)(unsigned long long *address, size_t length, unsigned flags);
    int (*free)(unsigned long long address);
    int (*copy)(unsigned long long dst, unsigned long long src, size_t length);
    int (*synchronize)(void);
} gpu;

/** Make the first GPU this thread's. @return NULL, or why that can't be. */
static inline const char *gpu_start(void)
{
    static const struct {
        const char *name;
        void *function;
    } names[]     = {{"cuInit", &gpu.init},
                     {"cuDeviceGet", &gpu.device_get},
                     {"cuDevicePrimaryCtxRetain", &gpu.context_retain},
                     {"cuCtxSetCurrent", &gpu.context_set},
                     {"cuMemAlloc_v2", &gpu.alloc},
                     {"cuMemAllocManaged", &gpu.alloc_managed},
                     {"cuMemFree_v2", &gpu.free},
                     {"cuMemcpy", &gpu.copy},
                     {"cuCtxSynchronize", &gpu.synchronize}};
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    void *context, *function;
    int device;
    size_t i;

    if (library == NULL) {
        return "there is no libcuda.so.1";
    }
    for (i = 0; i < sizeof(names) / sizeof(names[0]); ++i) {
        function = dlsym(library, names[i].name);
        if (function == NULL) {
            return names[i].name;
        }
        memcpy(names[i].function, &function, sizeof(function));
    }
    if ((gpu.init(0) != 0) || (gpu.device_get(&device, 0) != 0)) {
        return "there is no GPU";
    }
    if ((gpu.context_retain(&context, device) != 0) || (gpu.context_set(context) != 0)) {
        return "the GPU can't be used";
    }
    return NULL;
}

static inline void gpu_must(int result, const char *what)
{
    if (result != 0) {
        fprintf(stderr, "FATAL: %s: CUDA's error %d\n", what, result);
        _Exit(2);
    }
}

static inline void *gpu_alloc(gpu_kind_t kind, size_t length)
{
    enum { ATTACH_GLOBAL = 1 };
    unsigned long long address = 0;

    switch (kind) {
    case GPU_DEVICE:
        gpu_must(gpu.alloc(&address, length), "cuMemAlloc");
        break;
    case GPU_MANAGED:
        gpu_must(gpu.alloc_managed(&address, length, ATTACH_GLOBAL), "cuMemAllocManaged");
        break;
    default:
        return malloc(length);
    }
    return (void *)address; /* NOLINT(performance-no-int-to-ptr): CUDA gives numbers */
}

static inline void gpu_free(gpu_kind_t kind, void *memory)
{
    if (kind == GPU_HOST) {
        free(memory);
    } else {
        gpu_must(gpu.free((unsigned long long)memory), "cuMemFree");
    }
}

/** Between memories of any kind; over when it returns, also for what UCX does in streams of its own. */
static inline void gpu_copy(void *dst, const void *src, size_t length)
{
    if (length > 0) {
        gpu_must(gpu.copy((unsigned long long)dst, (unsigned long long)src, length), "cuMemcpy");
        gpu_must(gpu.synchronize(), "cuCtxSynchronize");
    }
}

#endif
