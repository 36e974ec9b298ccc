/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The call stack of this thread, as places in files: names are looked up later, elsewhere (addr2line -e FILE OFFSET).
 */
#ifndef UCI_STACK_H_
#define UCI_STACK_H_

#include "json_writer.h"

/** Frames at most. */
#define UCI_STACK_DEPTH 32

typedef struct uci_stack {
    int depth;
    void *frames[UCI_STACK_DEPTH]; /**< return addresses, innermost first */
} uci_stack_t;

/** Take the stack, without the caller of this. Opens libgcc_s at the first call (backtrace(3)); some microseconds. */
void uci_stack_take(uci_stack_t *stack);

/** Write it as member @a name: an array of "file+0xoffset", the offset being that of a return address in the file's own addresses; the
 *  address alone where no file is mapped. */
void uci_stack_write(const uci_stack_t *stack, uci_json_t *json, const char *name);

#endif
