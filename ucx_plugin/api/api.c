/* SPDX-License-Identifier: BSD-3-Clause */
#include "attach/plugin.h"

#include "turn/dump.h"
#include "twins/twin.h"
#include "version.h"

UCI_EXPORT const char *uci_get_version_string(void);

/** @return version and revision of the library that is loaded; for tools and debuggers. */
UCI_EXPORT const char *uci_get_version_string(void)
{
    return UCI_VERSION " (" UCI_REVISION ")";
}

UCI_EXPORT void uci_dump_state(int fd);

/** Write what UCI is at to @a fd, as text: for a debugger that has stopped this process, `call (void)uci_dump_state(2)`. */
UCI_EXPORT void uci_dump_state(int fd)
{
    uci_dump(fd);
}

UCI_EXPORT int uci_twins_answer(unsigned kind, uint64_t words[2]);

/** For libuci_twin_time.so: see uci_twin_answer(). */
UCI_EXPORT int uci_twins_answer(unsigned kind, uint64_t words[2])
{
    return uci_twin_answer(kind, words);
}
