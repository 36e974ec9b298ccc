/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Log lines in UCX's shape, on stderr, one write(2) each:
 *
 *     [1700000000.123456] [host:pid:tid] file.c:42  UCI WARN  text
 *
 * The function that decides an error logs it; its callers do not. Text is lower case, "device %s" rather
 * than "device=%s", %m for system calls (errno is preserved up to the formatting).
 */
#ifndef UCI_LOG_H_
#define UCI_LOG_H_

#include "types.h"

typedef enum {
    UCI_LOG_FATAL,
    UCI_LOG_ERROR,
    UCI_LOG_WARN,
    UCI_LOG_INFO,
    UCI_LOG_DEBUG,
    UCI_LOG_TRACE,
    UCI_LOG_LAST
} uci_log_level_t;

/** Lines of a level above this one are not printed. Set from UCI_LOG_LEVEL; WARN until then. */
extern uci_log_level_t uci_log_level;

/** Names by level ("fatal", "error", ...), NULL-terminated, for the configuration parser. */
extern const char *const uci_log_level_names[];

#define uci_log_is_enabled(_level) uci_unlikely((_level) <= uci_log_level)

#define uci_log(_level, _fmt, ...) \
    do { \
        if (uci_log_is_enabled(_level)) { \
            uci_log_print(__FILE__, __LINE__, _level, _fmt, ##__VA_ARGS__); \
        } \
    } while (0)

#define uci_error(_fmt, ...) uci_log(UCI_LOG_ERROR, _fmt, ##__VA_ARGS__)
#define uci_warn(_fmt, ...)  uci_log(UCI_LOG_WARN, _fmt, ##__VA_ARGS__)
#define uci_info(_fmt, ...)  uci_log(UCI_LOG_INFO, _fmt, ##__VA_ARGS__)
#define uci_debug(_fmt, ...) uci_log(UCI_LOG_DEBUG, _fmt, ##__VA_ARGS__)
#define uci_trace(_fmt, ...) uci_log(UCI_LOG_TRACE, _fmt, ##__VA_ARGS__)

/** Log at FATAL level, whatever the level set, then abort(). */
#define uci_fatal(_fmt, ...) \
    do { \
        uci_log_print(__FILE__, __LINE__, UCI_LOG_FATAL, _fmt, ##__VA_ARGS__); \
        uci_log_abort(); \
    } while (0)

/** Format and write one line, cut at 4 KiB ("..."). Control characters become blanks: a line stays one line.
 *  Thread safe; errno is left as it was; colours are never used. */
void uci_log_print(const char *file, unsigned line, uci_log_level_t level, const char *fmt, ...)
        __attribute__((format(printf, 4, 5), cold));

/** abort(), after flushing what other parts registered with uci_log_at_abort(). */
void uci_log_abort(void) __attribute__((noreturn, cold));

/** Register the one function that is called before abort() (statistics are written there); NULL to clear. */
void uci_log_at_abort(void (*func)(void));

#endif
