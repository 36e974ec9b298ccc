/* SPDX-License-Identifier: BSD-3-Clause */
#include "json_writer.h"

#include <locale.h>
#include <math.h>

/* @return bytes of the well-formed UTF-8 sequence at @a text, 0 if it is none (RFC 3629). */
static unsigned uci_json_utf8_length(const unsigned char *text)
{
    unsigned length = (text[0] < 0x80)   ? 1
                      : (text[0] < 0xc2) ? 0
                      : (text[0] < 0xe0) ? 2
                      : (text[0] < 0xf0) ? 3
                      : (text[0] < 0xf5) ? 4
                                         : 0;
    unsigned i;

    for (i = 1; i < length; ++i) {
        if ((text[i] & 0xc0) != 0x80) { /* the terminating 0 too */
            return 0;
        }
    }

    if (((text[0] == 0xe0) && (text[1] < 0xa0)) || /* overlong */
        ((text[0] == 0xed) && (text[1] > 0x9f)) || /* surrogate */
        ((text[0] == 0xf0) && (text[1] < 0x90)) || /* overlong */
        ((text[0] == 0xf4) && (text[1] > 0x8f))) { /* above U+10FFFF */
        return 0;
    }
    return length;
}

void uci_json_write_string(FILE *stream, const char *text)
{
    const unsigned char *p = (const unsigned char *)text;
    unsigned length;

    putc('"', stream);
    while (*p != '\0') {
        length = uci_json_utf8_length(p);
        if ((length == 0) || (*p < ' ') || (*p == 0x7f)) {
            fprintf(stream, "\\u%04x", *p++);
            continue;
        }
        if ((*p == '"') || (*p == '\\')) {
            putc('\\', stream);
        }
        fwrite(p, 1, length, stream);
        p += length;
    }
    putc('"', stream);
}

/* What comes before a value */
static FILE *uci_json_member(uci_json_t *json, const char *name)
{
    if (!json->first) {
        fputs((name != NULL) ? json->between : ", ", json->stream);
    }
    json->first = false;
    if (name != NULL) {
        uci_json_write_string(json->stream, name);
        fputs(": ", json->stream);
    }
    return json->stream;
}

void uci_json_begin(uci_json_t *json, FILE *stream, const char *between)
{
    json->stream  = stream;
    json->between = between;
    json->first   = true;
    fputc('{', stream);
    fputs((between[1] == '\n') ? between + 1 : "", stream);
}

void uci_json_end(uci_json_t *json)
{
    fputs((json->between[1] == '\n') ? "\n}" : "}", json->stream);
}

void uci_json_string(uci_json_t *json, const char *name, const char *text)
{
    FILE *stream = uci_json_member(json, name);

    if (text == NULL) {
        fputs("null", stream);
    } else {
        uci_json_write_string(stream, text);
    }
}

void uci_json_write_double(FILE *stream, double value, unsigned decimals)
{
    locale_t c_locale = newlocale(LC_ALL_MASK, "C", NULL), saved = uselocale(c_locale);

    fprintf(stream, isfinite(value) ? "%.*f" : "null", (int)decimals, value);

    uselocale(saved);
    freelocale(c_locale);
}

void uci_json_int(uci_json_t *json, const char *name, int64_t value)
{
    fprintf(uci_json_member(json, name), "%ld", (long)value);
}

void uci_json_uint(uci_json_t *json, const char *name, uint64_t value)
{
    fprintf(uci_json_member(json, name), "%lu", (unsigned long)value);
}

void uci_json_double(uci_json_t *json, const char *name, double value, unsigned decimals)
{
    uci_json_write_double(uci_json_member(json, name), value, decimals);
}

void uci_json_null(uci_json_t *json, const char *name)
{
    fputs("null", uci_json_member(json, name));
}

void uci_json_address(uci_json_t *json, const char *name, uint64_t value, unsigned digits)
{
    fprintf(uci_json_member(json, name), "\"0x%0*lx\"", (int)digits, (unsigned long)value);
}

void uci_json_hex(uci_json_t *json, const char *name, const void *bytes, size_t length)
{
    const uint8_t *byte = bytes;
    FILE *stream        = uci_json_member(json, name);
    size_t i;

    fputc('"', stream);
    for (i = 0; i < length; ++i) {
        fprintf(stream, "%02x", byte[i]);
    }
    fputc('"', stream);
}

void uci_json_open(uci_json_t *json, const char *name, char bracket)
{
    fputc(bracket, uci_json_member(json, name));
    json->first = true;
}

void uci_json_close(uci_json_t *json, char bracket)
{
    fputc(bracket, json->stream);
    json->first = false;
}
