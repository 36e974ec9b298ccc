/* SPDX-License-Identifier: BSD-3-Clause */
#include "plugin.h"

#include "version.h"

UCI_EXPORT const char *uci_get_version_string(void);

/** @return version and revision of the library that is loaded; for tools and debuggers. */
UCI_EXPORT const char *uci_get_version_string(void)
{
    return UCI_VERSION " (" UCI_REVISION ")";
}
