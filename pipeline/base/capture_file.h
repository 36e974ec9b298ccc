/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * UCI_CAPTURE: both versions of damaged chunks in full, HOST.PID.RANK.NUMBER.bad and .good in a folder that may be shared.
 * Bounded for each process. Thread safe.
 */
#ifndef UCI_CAPTURE_FILE_H_
#define UCI_CAPTURE_FILE_H_

#include "settings/settings.h"

/** Chunks and bytes (of both versions) that a process captures. */
#define UCI_CAPTURE_CHUNKS 64
#define UCI_CAPTURE_BYTES  (256ul << 20)

UCI_INLINE bool uci_capture_is_on(void)
{
    return (uci_settings.capture != NULL) && (uci_settings.capture[0] != '\0');
}

/**
 * Write a chunk, if UCI_CAPTURE is set and there is room. Trouble is a warning, once.
 * @param name  the name of the bad one, without its folder; "" if it was not written.
 * @param good  NULL: nobody has the right bytes, and there is no .good.
 */
void uci_capture_chunk(char *name, size_t size, const void *bad, size_t bad_length, const void *good,
                       size_t good_length);

#endif
