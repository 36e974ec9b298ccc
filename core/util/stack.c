/* SPDX-License-Identifier: BSD-3-Clause */
#include "stack.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <limits.h>
#include <link.h>
#include <string.h>
#include <unistd.h>

/* How many frames backtrace() has of its own depends on who has put himself before it (sanitizers do) */
UCI_NOINLINE void uci_stack_take(uci_stack_t *stack)
{
    const void *caller = __builtin_return_address(0);
    void *frames[UCI_STACK_DEPTH + 4];
    int depth = backtrace(frames, (int)uci_array_size(frames));
    int first = 0;

    while ((first < depth) && (frames[first] != caller)) {
        ++first;
    }
    first        = (first < depth) ? first + 1 : uci_min(depth, 2); /* not the caller, who takes it */
    stack->depth = uci_min(depth - first, UCI_STACK_DEPTH);
    memcpy(stack->frames, frames + first, (size_t)stack->depth * sizeof(frames[0]));
}

/* The loader has no name for the program itself */
static const char *uci_stack_program(char *path, size_t size)
{
    ssize_t length = readlink("/proc/self/exe", path, size - 1);

    path[(length > 0) ? length : 0] = '\0';
    return path;
}

static void uci_stack_write_frame(const void *frame, uci_json_t *json)
{
    char path[PATH_MAX], text[PATH_MAX + 32];
    struct link_map *map = NULL;
    const char *file;
    Dl_info info;

    if ((dladdr1(frame, &info, (void **)&map, RTLD_DL_LINKMAP) == 0) || (map == NULL)) {
        uci_json_address(json, NULL, (uintptr_t)frame, 1);
        return;
    }
    file = (map->l_name[0] != '\0') ? map->l_name : uci_stack_program(path, sizeof(path));
    snprintf(text, sizeof(text), "%s+0x%lx", file, (unsigned long)((uintptr_t)frame - map->l_addr));
    uci_json_string(json, NULL, text);
}

void uci_stack_write(const uci_stack_t *stack, uci_json_t *json, const char *name)
{
    int i;

    uci_json_open(json, name, '[');
    for (i = 0; i < stack->depth; ++i) {
        uci_stack_write_frame(stack->frames[i], json);
    }
    uci_json_close(json, ']');
}
