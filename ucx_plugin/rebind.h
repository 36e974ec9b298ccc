/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Lead calls of other objects to our functions, where we have no precedence in the search for symbols: by writing their
 * tables of addresses. A name can stand in three kinds of slots:
 *
 *     JUMP_SLOT   calls through the PLT, bound or still lazy
 *     GLOB_DAT    calls and addresses in code built with -fno-plt, and with BIND_NOW
 *     64, ABS64   initialized pointers in data
 *
 * Slots that the loader has made read-only (RELRO) are made writable for the moment. What is not reached: addresses that a
 * program got from dlsym() or has copied, calls from constructors of an object that is being opened, calls inside of an
 * object that was linked statically, and other namespaces (dlmopen). GOTCHA (LLNL) has the same limits.
 */
#ifndef UCI_REBIND_H_
#define UCI_REBIND_H_

#include "types.h"

/**
 * Called with the loader's list of objects locked. It must not call dlsym(), dlopen() or dladdr(): they take another lock of the
 * loader, which a thread in dlopen() holds while it waits for this one.
 * @return what slots for @a symbol, which hold @a current, are to hold, or NULL: leave them alone.
 */
typedef void *(*uci_rebind_func_t)(const char *symbol, void *current);

/** What one pass has done. */
typedef struct uci_rebind_result {
    unsigned objects; /**< in which slots were written */
    unsigned slots;
} uci_rebind_result_t;

/**
 * Write the slots of all objects of the process but ourselves that were not there at the last pass, or of all. All or
 * nothing: after an error the slots of this pass are as they were. One thread at a time.
 * @param result_p  what was done
 * @return UCI_OK, UCI_ERR_UNSUPPORTED on processors other than x86_64 and aarch64 or without a table of symbols, UCI_ERR_IO if a page can't be made writable,
 *         UCI_ERR_NO_MEMORY. Logged.
 */
uci_status_t uci_rebind(uci_rebind_func_t func, bool all, uci_rebind_result_t *result_p);

/** For a uci_rebind_func_t: @return the function that we export under @a name, or NULL. Takes no lock. */
void *uci_rebind_own_function(const char *name);

/** @return true if we were preloaded (or linked with the program): then the search for symbols finds us first anyway. The global
 *  scope does not tell, since UCX opens its modules with RTLD_GLOBAL. */
bool uci_rebind_is_needless(void);

/** @return the path of another loaded object with our DT_SONAME, that is another copy of this library, or NULL. */
const char *uci_rebind_other_copy(void);

/**
 * Is another copy of this library first in the search for symbols, as the first of two that are preloaded?
 * @param own_p  our own path, for a message
 * @return the path of that copy, or NULL. Both are valid as long as the objects are loaded. Takes the loader's locks.
 */
const char *uci_rebind_copy_in_front(const char **own_p);

#endif
