/* SPDX-License-Identifier: BSD-3-Clause */
#include "capture.h"
#include "locales.h"
#include "util/json_writer.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

static char *write_string(const char *text)
{
    char *out = NULL;
    size_t length;
    FILE *stream = open_memstream(&out, &length);

    uci_json_write_string(stream, text);
    fclose(stream);
    return out;
}

Test(json_writer, strings_survive_any_byte)
{
    char text[256], *out;
    const char *value;
    json_t *string;
    unsigned i;

    for (i = 1; i < sizeof(text); ++i) {
        text[i - 1] = (char)i;
    }
    text[sizeof(text) - 1] = '\0';

    out    = write_string(text);
    string = json_loads(out, JSON_DECODE_ANY, NULL);
    cr_assert(string != NULL, "%s", out);
    value = json_string_value(string);
    cr_expect(memcmp(value, text, 0x7f) == 0);    /* ASCII comes back as it is */
    cr_expect(strstr(value, "\xc3\xbf") != NULL); /* byte 0xff as U+00FF */
    json_decref(string);
    free(out);
}

Test(json_writer, strings_keep_utf8)
{
    static const char *const texts[] = {"",        "plain", "a\"b\\c/d", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80",
                                        "x\ty\nz", "100%"};
    static const char *const broken[] = {"\xc3",
                                         "\xe2\x82",
                                         "\xc0\xaf",
                                         "\xe0\x80\x80",
                                         "\xed\xa0\x80",
                                         "\xf0\x80\x80\x80",
                                         "\xf4\x90\x80\x80",
                                         "\xf5\x80\x80\x80",
                                         "\x80",
                                         "a\xe2"
                                         "b\xc3\xa9"};
    json_t *string;
    char *out;
    size_t i;

    for (i = 0; i < uci_array_size(texts); ++i) {
        out    = write_string(texts[i]);
        string = json_loads(out, JSON_DECODE_ANY, NULL);
        cr_assert(string != NULL, "%s", out);
        cr_expect(strcmp(json_string_value(string), texts[i]) == 0, "%s", out);
        json_decref(string);
        free(out);
    }
    for (i = 0; i < uci_array_size(broken); ++i) {
        out    = write_string(broken[i]);
        string = json_loads(out, JSON_DECODE_ANY, NULL);
        cr_expect(string != NULL, "%s", out);
        json_decref(string);
        free(out);
    }
}

/* One object with all that there is. @param between  of its members. @return it, to be freed. */
static char *write_object(const char *between)
{
    char *out = NULL;
    size_t length;
    FILE *stream = open_memstream(&out, &length);
    uci_json_t json;

    uci_json_begin(&json, stream, between);
    uci_json_string(&json, "text", "two\nlines \"quoted\" \\ \xff");
    uci_json_string(&json, "na\"me", NULL);
    uci_json_int(&json, "below", -5);
    uci_json_uint(&json, "large", INT64_MAX);
    uci_json_double(&json, "time", 1795366527.4518814, 6);
    uci_json_address(&json, "tag", 0x50000100000, 16);
    uci_json_hex(&json, "bytes", "\x00\xff\x80", 3);
    uci_json_hex(&json, "nothing", "", 0);
    uci_json_open(&json, "ranges", '[');
    uci_json_open(&json, NULL, '[');
    uci_json_uint(&json, NULL, 1);
    uci_json_string(&json, NULL, "burst");
    uci_json_close(&json, ']');
    uci_json_open(&json, NULL, '[');
    uci_json_close(&json, ']');
    uci_json_close(&json, ']');
    uci_json_open(&json, "inner", '{');
    uci_json_null(&json, "none");
    uci_json_int(&json, "more", 1);
    uci_json_close(&json, '}');
    uci_json_int(&json, "last", 0);
    uci_json_end(&json);
    fclose(stream);
    return out;
}

Test(json_writer, objects_are_read_back)
{
    static const char *const betweens[] = {", ", ",\n  "};
    json_t *root, *ranges;
    char *out;
    size_t i;

    for (i = 0; i < uci_array_size(betweens); ++i) {
        out  = write_object(betweens[i]);
        root = json_loads(out, JSON_REJECT_DUPLICATES, NULL);
        cr_assert(root != NULL, "%s", out);
        cr_expect((i == 1) == (strchr(out, '\n') != NULL), "%s", out);
        cr_expect(strcmp(json_string_value(json_object_get(root, "text")), "two\nlines \"quoted\" \\ \xc3\xbf") == 0);
        cr_expect(json_is_null(json_object_get(root, "na\"me")));
        cr_expect(json_integer_value(json_object_get(root, "below")) == -5);
        cr_expect(json_integer_value(json_object_get(root, "large")) == INT64_MAX);
        cr_expect(strstr(out, "1795366527.451881") != NULL, "%s", out);
        cr_expect(strcmp(json_string_value(json_object_get(root, "tag")), "0x0000050000100000") == 0);
        cr_expect(strcmp(json_string_value(json_object_get(root, "bytes")), "00ff80") == 0);
        cr_expect(strcmp(json_string_value(json_object_get(root, "nothing")), "") == 0);
        ranges = json_object_get(root, "ranges");
        cr_expect(json_array_size(ranges) == 2);
        cr_expect(strcmp(json_string_value(json_array_get(json_array_get(ranges, 0), 1)), "burst") == 0);
        cr_expect(json_array_size(json_array_get(ranges, 1)) == 0);
        cr_expect(json_integer_value(json_object_get(json_object_get(root, "inner"), "more")) == 1);
        cr_expect(json_object_size(root) == 11);
        json_decref(root);
        free(out);
    }
}

Test(json_writer, the_locale_does_not_matter)
{
    char *out;

    comma_locale_set();
    out = write_object(", ");
    cr_expect(strstr(out, ": 1795366527.451881") != NULL, "%s", out);
    free(out);
}

Test(json_writer, numbers_that_json_does_not_have)
{
    const double values[] = {(double)INFINITY, -(double)INFINITY, (double)NAN};
    char out[16];
    FILE *stream;
    size_t i;

    for (i = 0; i < uci_array_size(values); ++i) {
        stream = fmemopen(out, sizeof(out), "w");
        uci_json_write_double(stream, values[i], 3);
        fclose(stream);
        cr_expect_str_eq(out, "null");
    }
}

Test(json_writer, an_empty_object)
{
    char *out = NULL;
    size_t length;
    FILE *stream = open_memstream(&out, &length);
    uci_json_t json;

    uci_json_begin(&json, stream, ", ");
    uci_json_end(&json);
    fclose(stream);
    cr_expect(strcmp(out, "{}") == 0, "%s", out);
    free(out);
}
