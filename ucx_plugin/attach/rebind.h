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
 * Slots that the loader has made read-only (RELRO) are made writable for the moment, and what was writable stays so.
 *
 * An object that another thread is opening is in the loader's list before its slots are filled in: what is written there is
 * lost, or added to, and pages that are made read-only again end the process. Such objects are left alone until the next pass,
 * which the thread that opens them makes: uci_rebind_settle() tells which they are.
 *
 * What is not reached: addresses that a
 * program got from dlsym() or has copied, calls from constructors of an object that is being opened, calls inside of an
 * object that was linked statically, and other namespaces (dlmopen). GOTCHA (LLNL) has the same limits.
 */
#ifndef UCI_REBIND_H_
#define UCI_REBIND_H_

#include "util/types.h"

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

/** Objects that the loader has done with: so many at the beginning of its list, as long as none is unloaded. */
typedef struct uci_rebind_extent {
    size_t objects;
    unsigned long long unloaded; /**< how many had been by then, in all */
} uci_rebind_extent_t;

/**
 * Count the objects there are, and wait until the loader has done with all of these. Takes the loader's locks: hold none that
 * a constructor may want. Thread safe.
 */
void uci_rebind_settle(uci_rebind_extent_t *extent_p);

/**
 * Write the slots of all objects of @a extent but ourselves that were not done by a pass before, or of all. All or
 * nothing: after an error the slots of this pass are as they were. One thread at a time.
 * @param extent    from uci_rebind_settle(); objects that came later are left to a later pass.
 * @param result_p  what was done
 * @return UCI_OK; UCI_ERR_BUSY (not logged) if objects have been unloaded since @a extent was found: nothing was done; logged:
 *         UCI_ERR_UNSUPPORTED on processors other than x86_64 and aarch64 or without a table of symbols, UCI_ERR_IO if a page
 *         can't be made writable, UCI_ERR_NO_MEMORY.
 */
uci_status_t uci_rebind(uci_rebind_func_t func, bool all, const uci_rebind_extent_t *extent,
                        uci_rebind_result_t *result_p);

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
