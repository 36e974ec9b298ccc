/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Which of the runs of a program this process belongs to: what UCI_TWINS says, "FOLDER,K/N".
 */
#ifndef UCI_TWIN_SPEC_H_
#define UCI_TWIN_SPEC_H_

#include <stdio.h>
#include "util/types.h"

#define UCI_TWINS_MIN 2u /**< fewer have nothing to compare */
#define UCI_TWINS_MAX 3u

#define UCI_TWINS_CHUNK (32ul << 10) /**< UCI_CHUNK_SIZE of twins unless it is set: of a slot in shared memory */

/** What twins do with a message in which they differ. */
typedef enum {
    UCI_TWINS_COMPARE, /**< tell */
    UCI_TWINS_CORRECT  /**< vote before a receive completes, and give the one in the minority what the others have */
} uci_twins_mode_t;

/** Names by value, NULL-terminated. */
extern const char *const uci_twins_mode_names[];

typedef struct uci_twin_spec {
    char *folder;  /**< which all twins share, from malloc(); NULL: there are none */
    unsigned twin; /**< this one, from 0 */
    unsigned of;   /**< how many there are, 2 or 3; 0: none */
} uci_twin_spec_t;

/**
 * Parse "FOLDER,K/N": N is 2 or 3, K below N. A folder may hold commas; "" means no twins.
 * @param spec_p  unchanged after an error. @param error  says then what is wrong, within @a error_size bytes.
 * @return UCI_OK, UCI_ERR_INVALID_PARAM, UCI_ERR_NO_MEMORY; none is logged.
 */
uci_status_t uci_twin_spec_parse(const char *text, uci_twin_spec_t *spec_p, char *error, size_t error_size);

/** Print @a spec as uci_twin_spec_parse() reads it; nothing if there are no twins. */
void uci_twin_spec_print(const uci_twin_spec_t *spec, FILE *stream);

#endif
