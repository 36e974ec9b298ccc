/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * What every program here needs: two workers in one process that talk to each other, contents that can be told
 * apart, every form of send and receive behind one call, and a list of tests to run.
 *
 * The programs use libucp as an application does and know nothing of UCI: what they expect must hold on plain UCX
 * and with the library preloaded. Usage of each: PROGRAM [TEST NAME PART]; exit status 1 if a test failed.
 */
#ifndef UCI_TESTS_UCP_UCP_TEST_H_
#define UCI_TESTS_UCP_UCP_TEST_H_

#include <ucp/api/ucp.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* -------------------------------------------------------------- tests */

typedef struct ut_test {
    const char *name;
    void (*func)(void);
    uint64_t features; /**< for ut_features */
} ut_test_t;

#define UT_TEST(_name) \
    { \
#_name, _name, 0 \
    }

/** What the running test says of itself: a test that is listed twice opens contexts of different features. */
extern uint64_t ut_features;

/** Run the tests whose name contains argv[1], one line each. @return what main returns. */
int ut_main(int argc, char **argv, const ut_test_t *tests, size_t count);
#define UT_MAIN(_tests) \
    int main(int argc, char **argv) \
    { \
        return ut_main(argc, argv, _tests, sizeof(_tests) / sizeof((_tests)[0])); \
    }

void ut_failed(const char *file, int line, const char *format, ...) __attribute__((format(printf, 3, 4)));
void ut_fatal(const char *file, int line, const char *format, ...) __attribute__((noreturn, format(printf, 3, 4)));

/** The test has failed, but goes on. */
#define UT_CHECK(_condition, ...) \
    do { \
        if (!(_condition)) { \
            ut_failed(__FILE__, __LINE__, __VA_ARGS__); \
        } \
    } while (0)

/** The program can't go on. */
#define UT_REQUIRE(_condition, ...) \
    do { \
        if (!(_condition)) { \
            ut_fatal(__FILE__, __LINE__, __VA_ARGS__); \
        } \
    } while (0)

#define UT_CHECK_STATUS(_status, _expected, _what) \
    do { \
        ucs_status_t ut_status_ = (_status); \
        UT_CHECK(ut_status_ == (_expected), "%s: %s, expected %s", (_what), ucs_status_string(ut_status_), \
                 ucs_status_string(_expected)); \
    } while (0)

/** Is the library under test on? Only for what UCX leaves open, such as a text. */
bool ut_uci_is_on(void);

/** Are faults injected? Then nothing is promised to be there, or complete, at once. */
bool ut_faults_are_on(void);

/** Failed checks so far. */
unsigned ut_failures(void);

/* ------------------------------------------------------------ workers */

/** What we ask UCX to keep behind each request; request_init fills it in. */
typedef struct ut_area {
    uint64_t magic;
    void *self;
    uint64_t cookie; /**< the user's; not touched by anyone else */
    int calls;       /**< of a callback that has no user_data */
    ucs_status_t status;
    size_t length;
    ucp_tag_t tag;
} ut_area_t;

typedef struct ut_side {
    ucp_context_h context;
    ucp_worker_h worker;
    ucp_ep_h ep; /**< to the other side */
} ut_side_t;

/** Two sides; under UCX_TLS=self both are the same, which talks to itself. */
typedef struct ut_pair {
    ut_side_t sides[2];
    ut_side_t *a;
    ut_side_t *b;
} ut_pair_t;

extern unsigned ut_inits, ut_cleanups; /**< calls of request_init, request_cleanup */

ucp_context_h ut_context_create(uint64_t features);
ucp_worker_h ut_worker_create(ucp_context_h context); /**< for this thread alone */
ucp_worker_h ut_worker_create_with(ucp_context_h context, ucs_thread_mode_t mode);
ucp_ep_h ut_ep_create(ucp_worker_h from, ucp_worker_h to);
/** The same with more than the address, which is filled in here. */
ucp_ep_h ut_ep_create_as(ucp_worker_h from, ucp_worker_h to, ucp_ep_params_t params);
void ut_ep_close(ut_pair_t *pair, ucp_ep_h ep);

/** Tag matching only, unless @a features says more. Remembered for ut_progress(). */
void ut_pair_open(ut_pair_t *pair, uint64_t features);
/** These features and no others, and workers of @a params. Dies if they can't have the mode that is asked for. */
void ut_pair_open_as(ut_pair_t *pair, uint64_t features, const ucp_worker_params_t *params);
void ut_pair_open_with(ut_pair_t *pair, uint64_t features, ucs_thread_mode_t mode);
/** @a self: both sides are one worker, whatever the transports. */
void ut_pair_open_self(ut_pair_t *pair, uint64_t features);
void ut_pair_close(ut_pair_t *pair);

void ut_progress(const ut_pair_t *pair);
/** Progress a while: whatever can arrive has arrived. */
void ut_settle(const ut_pair_t *pair);

/** Has it been too long since ut_clock_start()? Dies if so. */
void ut_clock_start(void);
void ut_clock_check(const char *what);

/* ---------------------------------------------------------- contents */

void ut_fill(void *data, size_t length, unsigned seed);
/** @return offset of the first wrong byte, or SIZE_MAX. */
size_t ut_verify(const void *data, size_t length, unsigned seed);
/** @return offset of the first byte that is not @a value, or SIZE_MAX. */
size_t ut_verify_value(const void *data, size_t length, uint8_t value);

typedef enum {
    UT_CONTIG1, /**< contig(1), count = length */
    UT_CONTIGN, /**< contig(length), count = 1 */
    UT_IOV1,
    UT_IOV3,
    UT_IOV5,    /**< with empty entries */
    UT_GENERIC, /**< pieces of 7 bytes with gaps of 3 */
    UT_LAYOUTS
} ut_layout_t;

extern const char *const ut_layout_names[UT_LAYOUTS];

/** A user's buffer of @a length packed bytes in some layout. */
typedef struct ut_data {
    ut_layout_t layout;
    size_t length; /**< packed */
    ucp_datatype_t datatype;
    void *buffer; /**< for UCX */
    size_t count; /**< for UCX */
    ucp_dt_iov_t iov[5];
    char *memory;
    size_t extent; /**< bytes of memory */
} ut_data_t;

/** Calls of a generic datatype's functions. */
extern unsigned ut_generic_starts, ut_generic_finishes;

/** The generic datatype stops at nothing but the borders of its pieces, and unpacks nothing else, as MPICH's. */
extern bool ut_generic_is_strict;
/** How often it was to unpack a part of a piece. */
extern unsigned ut_generic_refusals;

void ut_data_open(ut_data_t *data, ut_layout_t layout, size_t length);
void ut_data_fill(ut_data_t *data, unsigned seed);
void ut_data_poison(ut_data_t *data);
/** @return true if the first @a length packed bytes are those of @a seed and nothing else was touched. */
bool ut_data_check(const ut_data_t *data, size_t length, unsigned seed);
void ut_data_close(ut_data_t *data);

/* -------------------------------------------------------- operations */

typedef enum { UT_SEND_NB, UT_SEND_NBR, UT_SEND_NBX, UT_SEND_SYNC_NB, UT_SEND_SYNC_NBX, UT_SENDS } ut_send_t;
typedef enum { UT_RECV_NB, UT_RECV_NBR, UT_RECV_NBX, UT_RECV_MSG_NB, UT_RECV_MSG_NBX, UT_RECVS } ut_recv_t;

extern const char *const ut_send_names[UT_SENDS];
extern const char *const ut_recv_names[UT_RECVS];

/** Memory for a user's request, with guards at both ends. */
typedef struct ut_memory {
    char *base;
    size_t size;
    void *request;
} ut_memory_t;

void ut_memory_open(ut_memory_t *memory, ucp_context_h context);
void ut_memory_check(const ut_memory_t *memory);
void ut_memory_close(ut_memory_t *memory);

typedef struct ut_op {
    void *request;            /**< NULL once done */
    ucs_status_t status;      /**< UCS_INPROGRESS until known */
    ucp_tag_recv_info_t info; /**< of a receive */
    bool informed;            /**< info is set: UCX 1.13 does not where a receive completes at once */
    int calls;                /**< of the callback */
    bool callback;            /**< one was given */
    bool recv;
    ut_memory_t memory;
} ut_op_t;

void ut_send(ut_op_t *op, const ut_side_t *side, ut_send_t form, const ut_data_t *data, ucp_tag_t tag);
/** The MSG forms probe until the message is there. */
void ut_recv(ut_op_t *op, const ut_pair_t *pair, ut_recv_t form, ut_data_t *data, ucp_tag_t tag, ucp_tag_t mask);
/** Begin an operation that the program posts itself. */
void ut_op_open(ut_op_t *op, bool recv);
/** Callback of a send; @a user_data is its ut_op_t. */
void ut_op_sent(void *request, ucs_status_t status, void *user_data);
/** Take over what an nbx call returned. */
void ut_op_set(ut_op_t *op, ucs_status_ptr_t returned);
bool ut_op_is_done(const ut_op_t *op);
/** Wait, release. @return the status */
ucs_status_t ut_wait(const ut_pair_t *pair, ut_op_t *op);
ucs_status_t ut_wait_ptr(const ut_pair_t *pair, ucs_status_ptr_t request);
/** The same, in one of several threads, whose waits ut_clock_check() cannot time. */
ucs_status_t ut_wait_in_thread(const ut_pair_t *pair, ucs_status_ptr_t request);

/** Probe until there is a message. */
ucp_tag_message_h ut_probe(const ut_pair_t *pair, ucp_tag_t tag, ucp_tag_t mask, int remove, ucp_tag_recv_info_t *info);

/** Contiguous, nbx, wait for both ends, compare. */
void ut_exchange(const ut_pair_t *pair, size_t length, unsigned seed);

#define UT_TAG_ALL UINT64_MAX

#endif
