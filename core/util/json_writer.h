/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Writes one JSON object of flat members, and arrays in it, to a stream: valid whatever the strings hold. Errors are the stream's
 * (ferror()).
 *
 *     uci_json_t json;
 *
 *     uci_json_begin(&json, stream, ", ");
 *     uci_json_string(&json, "host", host);
 *     uci_json_uint(&json, "pid", pid);
 *     uci_json_end(&json);
 */
#ifndef UCI_JSON_WRITER_H_
#define UCI_JSON_WRITER_H_

#include <stdio.h>
#include "types.h"

typedef struct uci_json {
    FILE *stream;
    const char *between; /**< of members: ", " or ",\n  " */
    bool first;          /**< nothing has been written since the last bracket */
} uci_json_t;

/** Open the object. @param between  what separates its members; must live until uci_json_end(). */
void uci_json_begin(uci_json_t *json, FILE *stream, const char *between);
void uci_json_end(uci_json_t *json);

/** Members. A @a name of NULL writes an element of the array that is open. A @a text of NULL is null. */
void uci_json_string(uci_json_t *json, const char *name, const char *text);
void uci_json_int(uci_json_t *json, const char *name, int64_t value);
void uci_json_uint(uci_json_t *json, const char *name, uint64_t value);
void uci_json_double(uci_json_t *json, const char *name, double value, unsigned decimals);
void uci_json_null(uci_json_t *json, const char *name);
/** "0x..." with @a digits hexadecimal digits. */
void uci_json_address(uci_json_t *json, const char *name, uint64_t value, unsigned digits);
/** @a length bytes as a string of two hexadecimal digits each. */
void uci_json_hex(uci_json_t *json, const char *name, const void *bytes, size_t length);

/** Arrays and objects inside; to be closed in reverse order. */
void uci_json_open(uci_json_t *json, const char *name, char bracket);
void uci_json_close(uci_json_t *json, char bracket);

/** Write @a text as a JSON string alone, quotes included. A byte that is not UTF-8 is written as the character with
 *  that number, so that the result is valid JSON whatever comes in. */
void uci_json_write_string(FILE *stream, const char *text);

/** Write @a value alone, with a point, whatever the program's locale has there; null if JSON has no such number. */
void uci_json_write_double(FILE *stream, double value, unsigned decimals);

#endif
