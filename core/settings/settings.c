/* SPDX-License-Identifier: BSD-3-Clause */
#include "settings.h"
#include "util/file.h"
#include "util/process.h"
#include "util/word.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define UCI_SETTING_PREFIX      "UCI_"
#define UCI_SETTING_CONFIG_FILE "UCI_CONFIG_FILE"
#define UCI_SETTING_NAME_MAX    64 /* names longer than this are compared by their beginning */
#define UCI_SETTING_ERROR_MAX   512
#define UCI_SETTING_SHORT_MIN   3 /* letters that may stand for a longer name */

#define UCI_SETTINGS_FILE_MAX ((size_t)1 << 20)
/* Of UTF-8, with which some editors begin a file */
#define UCI_SETTINGS_MARK "\xef\xbb\xbf"

#define UCI_SETTINGS_BAD_LINES_MAX 10

#define UCI_KB ((size_t)1024)
#define UCI_GB ((size_t)1 << 30)

typedef struct uci_setting uci_setting_t;

struct uci_setting {
    const char *name;
    const char *default_text;
    const char *doc;
    const char *syntax; /* what is allowed: in errors and in the documentation */
    size_t offset;      /* of the value in uci_settings_t */

    /* Read @a text into @a value. On failure, may replace the text in @a error, which says what is allowed. */
    uci_status_t (*parse)(const uci_setting_t *setting, const char *text, void *value, char *error, size_t error_size);
    void (*print)(const uci_setting_t *setting, const void *value, FILE *stream);

    const char *const *names; /* UCI_SETTING_ENUM */
    size_t min, max;          /* UCI_SETTING_SIZE, UCI_SETTING_UINT */
    bool allow_auto;          /* UCI_SETTING_SIZE */
};

/* Where the text of a setting came from */
typedef struct uci_setting_source {
    char *text;    /* NULL: nowhere, the default is in force */
    unsigned line; /* of the file; 0: the environment */
} uci_setting_source_t;

uci_settings_t uci_settings;

const char *const uci_mode_names[]       = {"off", "detect", "repair", NULL};
const char *const uci_on_error_names[]   = {"abort", "error", "log", NULL};
const char *const uci_on_changed_names[] = {"warn", "abort", NULL};
const char *const uci_signatures_names[] = {"off", "p2p", "all", NULL};

static const char *const uci_settings_on_mismatch_names[] = {"continue", "pause", NULL}; /* as uci_on_mismatch_t */
static const char *const uci_settings_allreduce_names[]   = {"auto", "on", "off", NULL}; /* as uci_allreduce_t */
static const char *const uci_settings_carrier_names[]     = {"auto", "am", NULL};        /* as uci_carrier_t */
static const char *const uci_settings_path_names[]        = {"auto", "direct", "stream",
                                                             "get",  "bounce", NULL}; /* as uci_path_t */

static uci_status_t uci_setting_parse_enum(const uci_setting_t *setting, const char *text, void *value, char *error,
                                           size_t error_size)
{
    unsigned i;

    for (i = 0; setting->names[i] != NULL; ++i) {
        if (uci_word_is(text, setting->names[i])) {
            *(unsigned *)value = i;
            return UCI_OK;
        }
    }
    return UCI_ERR_INVALID_PARAM;
}

static void uci_setting_print_enum(const uci_setting_t *setting, const void *value, FILE *stream)
{
    fputs(setting->names[*(const unsigned *)value], stream);
}

static uci_status_t uci_setting_parse_bool(const uci_setting_t *setting, const char *text, void *value, char *error,
                                           size_t error_size)
{
    static const char *const names[] = {"off", "on", "0", "1", "no", "yes", "n", "y"};
    unsigned i;

    for (i = 0; i < uci_array_size(names); ++i) {
        if (uci_word_is(text, names[i])) {
            *(bool *)value = (i % 2) != 0;
            return UCI_OK;
        }
    }
    return UCI_ERR_INVALID_PARAM;
}

static void uci_setting_print_bool(const uci_setting_t *setting, const void *value, FILE *stream)
{
    fputs(*(const bool *)value ? "on" : "off", stream);
}

static uci_status_t uci_setting_parse_size(const uci_setting_t *setting, const char *text, void *value, char *error,
                                           size_t error_size)
{
    size_t size;

    if (uci_parse_size(text, setting->allow_auto, &size) != UCI_OK) {
        return UCI_ERR_INVALID_PARAM;
    }
    if ((size != UCI_SETTING_AUTO) && ((size < setting->min) || (size > setting->max))) {
        return UCI_ERR_INVALID_PARAM;
    }

    *(size_t *)value = size;
    return UCI_OK;
}

static void uci_setting_print_size(const uci_setting_t *setting, const void *value, FILE *stream)
{
    size_t size = *(const size_t *)value;
    char text[24];

    if (size == UCI_SETTING_AUTO) {
        fputs("auto", stream);
    } else {
        fputs(uci_size_text(size, text), stream);
    }
}

static uci_status_t uci_setting_parse_uint(const uci_setting_t *setting, const char *text, void *value, char *error,
                                           size_t error_size)
{
    unsigned long number;
    char *end;

    errno  = 0;
    number = strtoul(text, &end, 10);
    if ((*text < '0') || (*text > '9') || (*end != '\0') || (errno != 0) || (number < setting->min) ||
        (number > setting->max)) {
        return UCI_ERR_INVALID_PARAM;
    }

    *(unsigned *)value = (unsigned)number;
    return UCI_OK;
}

static void uci_setting_print_uint(const uci_setting_t *setting, const void *value, FILE *stream)
{
    fprintf(stream, "%u", *(const unsigned *)value);
}

static uci_status_t uci_setting_parse_digest(const uci_setting_t *setting, const char *text, void *value, char *error,
                                             size_t error_size)
{
    const uci_digest_ops_t *digest = uci_word_is(text, uci_digest_auto.name) ? &uci_digest_auto : uci_digest_find(text);

    if (digest == NULL) {
        return UCI_ERR_INVALID_PARAM;
    }

    *(const uci_digest_ops_t **)value = digest;
    return UCI_OK;
}

static void uci_setting_print_digest(const uci_setting_t *setting, const void *value, FILE *stream)
{
    const uci_digest_ops_t *digest = *(const uci_digest_ops_t *const *)value;

    fputs(digest->name, stream);
}

static uci_status_t uci_setting_parse_fault(const uci_setting_t *setting, const char *text, void *value, char *error,
                                            size_t error_size)
{
    return uci_fault_parse(text, value, error, error_size);
}

static void uci_setting_print_fault(const uci_setting_t *setting, const void *value, FILE *stream)
{
    uci_fault_print(value, stream);
}

/* The pattern is kept; it is tried here, so that a bad one shows when the job starts and not when it ends. */
static uci_status_t uci_setting_parse_file(const uci_setting_t *setting, const char *text, void *value, char *error,
                                           size_t error_size)
{
    char path[PATH_MAX];
    char *copy;

    if (uci_process_expand(text, path, sizeof(path)) != UCI_OK) {
        return UCI_ERR_INVALID_PARAM;
    }

    copy = strdup(text);
    if (copy == NULL) {
        snprintf(error, error_size, "out of memory");
        return UCI_ERR_NO_MEMORY;
    }

    *(char **)value = copy;
    return UCI_OK;
}

/* Nothing, as in "UCI_LIVE= ", is what no folder is called: whoever means "off" shall say it */
static uci_status_t uci_setting_parse_live(const uci_setting_t *setting, const char *text, void *value, char *error,
                                           size_t error_size)
{
    return (*text == '\0') ? UCI_ERR_INVALID_PARAM : uci_setting_parse_file(setting, text, value, error, error_size);
}

static void uci_setting_print_file(const uci_setting_t *setting, const void *value, FILE *stream)
{
    fputs(*(char *const *)value, stream);
}

static uci_status_t uci_setting_parse_twins(const uci_setting_t *setting, const char *text, void *value, char *error,
                                            size_t error_size)
{
    return uci_twin_spec_parse(text, value, error, error_size);
}

static void uci_setting_print_twins(const uci_setting_t *setting, const void *value, FILE *stream)
{
    uci_twin_spec_print(value, stream);
}

#define UCI_SETTING_ENUM(_names) .parse = uci_setting_parse_enum, .print = uci_setting_print_enum, .names = (_names)
#define UCI_SETTING_SIZE(_min, _max, _allow_auto) \
    .parse = uci_setting_parse_size, .print = uci_setting_print_size, .min = (_min), .max = (_max), \
    .allow_auto = (_allow_auto)
#define UCI_SETTING_UINT(_min, _max) \
    .parse = uci_setting_parse_uint, .print = uci_setting_print_uint, .min = (_min), .max = (_max)
#define UCI_SETTING_BOOL   .parse = uci_setting_parse_bool, .print = uci_setting_print_bool
#define UCI_SETTING_DIGEST .parse = uci_setting_parse_digest, .print = uci_setting_print_digest
#define UCI_SETTING_FAULT  .parse = uci_setting_parse_fault, .print = uci_setting_print_fault
#define UCI_SETTING_FILE   .parse = uci_setting_parse_file, .print = uci_setting_print_file
#define UCI_SETTING_LIVE   .parse = uci_setting_parse_live, .print = uci_setting_print_file
#define UCI_SETTING_TWINS  .parse = uci_setting_parse_twins, .print = uci_setting_print_twins

/* The log level comes first, so that it holds for what is said about the others. */
static const uci_setting_t uci_settings_table[] = {
        {"UCI_LOG_LEVEL", "warn",
         "How much UCI prints on standard error. Each level includes those before it: fatal and\n"
         "error report what made UCI stop or fail, warn what an administrator should look at\n"
         "(damaged messages among it), info what was chosen, debug and trace every step.",
         "[fatal|error|warn|info|debug|trace]", offsetof(uci_settings_t, log_level),
         UCI_SETTING_ENUM(uci_log_level_names)},

        {"UCI_MODE", "repair",
         "What UCI does with messages.\n"
         " - off    : nothing. Messages go through UCX as if UCI were not there.\n"
         " - detect : each message is checked when it arrives; one whose bytes are damaged is handled as\n"
         "            UCI_ON_ERROR says. What has not come, or came with a damaged header, is sent again.\n"
         " - repair : as detect, but damaged bytes are fetched again first.\n"
         "Set the same in all processes of a job.",
         "[off|detect|repair]", offsetof(uci_settings_t, mode), UCI_SETTING_ENUM(uci_mode_names)},

        {"UCI_REQUIRE", "off",
         "Stop a process that has UCI and can't be protected by it: with UCI_MODE=off or UCI_DIGEST=none, or\n"
         "as a UCX module that can't be attached. One whose MPI has sent its messages past UCX fails at its\n"
         "end. A connection by socket address whose other side has no UCI is refused. A process that has no\n"
         "UCI can't be stopped this way: see uci_run(1), --require.",
         "[off|on], or 0 or 1", offsetof(uci_settings_t, require), UCI_SETTING_BOOL},

        {"UCI_CONNECT_WAIT", "2",
         "How long a program that connects by socket address waits, when UCX has connected, for the other\n"
         "side to greet as a process with UCI does. If it does not, it is taken for one without UCI: its\n"
         "messages pass through, not verified, or it is refused (UCI_REQUIRE). With 0 nobody waits: no\n"
         "connection that is begun here by socket address is verified.",
         "seconds, to 3600", offsetof(uci_settings_t, connect_wait), UCI_SETTING_UINT(0, 3600)},

        {"UCI_BANNER", "off",
         "Rank 0 says on standard error that UCI is on when it first uses UCX, in one line: version, ranks,\n"
         "mode, digest, and how UCI got in.",
         "[off|on], or 0 or 1", offsetof(uci_settings_t, banner), UCI_SETTING_BOOL},

        {"UCI_DIGEST", "auto",
         "The checksum that messages are verified with. auto is xxh3, or crc64 or xxh128 for sizes\n"
         "where that was measured to be faster on this machine; all three are as certain. xxh3 misses a\n"
         "damaged message with odds of about 1 in 2^64; crc32c and crc64 are certain to find damage within\n"
         "32 or 64 adjacent bits; none checks nothing and serves measurements only. 'uci_info -D' says\n"
         "what each detects and how fast it is on this machine.",
         "[auto|none|xxh3|xxh128|fnv1a|fletcher|crc32c|crc64]", offsetof(uci_settings_t, digest), UCI_SETTING_DIGEST},

        {"UCI_CHUNK_SIZE", "auto",
         "Large messages are checked, and repaired, in chunks of this size. A smaller chunk means less\n"
         "to send again after damage, and more checksums to exchange. auto is what uci_tune measured for\n"
         "the transport and the size of the message; else 32k on the direct path (UCI_PATH), and in a\n"
         "stream 8k over shared memory and 60k over others.",
         "auto, or 256 to 16m bytes, <number>[b|k|m|g]", offsetof(uci_settings_t, chunk_size),
         UCI_SETTING_SIZE(UCI_CHUNK_SIZE_MIN, UCI_CHUNK_SIZE_MAX, true)},

        {"UCI_EAGER_MAX", "auto",
         "Messages up to this size are copied and sent at once with their checksum; the copy is kept\n"
         "until the receiver has confirmed it. Larger ones are moved when the receiver is ready for them,\n"
         "without such a copy. From 4k on, those that can take the direct path (UCI_PATH) do. auto is what\n"
         "uci_tune measured for the transport, or 32k over tcp and 8k over others.",
         "auto, or 0 to 32k bytes, <number>[b|k|m|g]", offsetof(uci_settings_t, eager_max),
         UCI_SETTING_SIZE(0, 32 * UCI_KB, true)},

        {"UCI_LOG_SIZE", "64m",
         "Memory, per UCX worker (an MPI process usually has one), for copies of messages that are not\n"
         "confirmed yet. Beyond it the oldest copies are dropped: damage to those messages is still\n"
         "detected, but cannot be repaired any more. The statistics count them as log_dropped.",
         "0 to 1024g bytes, <number>[b|k|m|g]", offsetof(uci_settings_t, log_size),
         UCI_SETTING_SIZE(0, 1024 * UCI_GB, false)},

        {"UCI_ON_ERROR", "abort",
         "What to do with a damaged message that could not be repaired.\n"
         " - abort : print what happened and abort the process, and so the job.\n"
         " - error : complete the operation with an error. Not every MPI passes it on to the program,\n"
         "           so the damage may go unnoticed.\n"
         " - log   : print it and let the damaged message through. For experiments only.",
         "[abort|error|log]", offsetof(uci_settings_t, on_error), UCI_SETTING_ENUM(uci_on_error_names)},

        {"UCI_ON_CHANGED", "warn",
         "What to do when a repair, a copy or UCI_CHECK_SOURCES finds that the program has written to the\n"
         "buffer of a send that is still pending, which MPI forbids. What has been read before arrives as it\n"
         "was then; what has to be read again, for a repair, as it is now.\n"
         " - warn  : print which bytes, to which rank and with which tag.\n"
         " - abort : the same, and abort the process, and so the job.",
         "[warn|abort]", offsetof(uci_settings_t, on_changed), UCI_SETTING_ENUM(uci_on_changed_names)},

        {"UCI_FAULT", "",
         "Damages messages on purpose, to test that UCI heals them. Empty: no damage. Otherwise a\n"
         "comma-separated list of:\n"
         " - rate=R   : how likely a message, chunk, header or acknowledgement is hit, 0 to 1 (required)\n"
         " - kind=K   : bitflip, burst, zero, stale, swap, truncate, several joined by '+', or any\n"
         "              (default: bitflip)\n"
         " - target=T : payload, header, tree, ack, memory, repair, region, leaf, frame, escape, several\n"
         "              joined by '+', or any, which is the first five (default: payload)\n"
         " - seed=N   : the same seed repeats the same damage (default: 1)\n"
         " - count=N  : stop after N faults in a process\n"
         " - after=N  : begin after N messages, chunks, headers or acknowledgements that could be hit\n"
         " - min=BYTES, max=BYTES : only messages of this size\n"
         " - peer=RANK : only messages to this rank, with target escape from it (not with UCI_MODE=off,\n"
         "              where ranks are not known)\n"
         " - rank=RANK, twin=K : only in the process of this rank; only in this one of its twins\n"
         "Target escape is not healed: a message is damaged in the receiver's buffer after its verification,\n"
         "as a processor that computes wrong would. Twins (UCI_TWINS) find it.\n"
         "Example: UCI_FAULT=rate=1e-3,kind=bitflip+burst,seed=7",
         "rate=R[,kind=K][,target=T][,seed=N] and further KEY=VALUE, separated by commas",
         offsetof(uci_settings_t, fault), UCI_SETTING_FAULT},

        {"UCI_STATS", "",
         "Where each process writes its statistics when it ends. Empty: nowhere; '-': a summary on\n"
         "standard error; else a JSON object in this file. In the file name %h stands for the host, %p\n"
         "for the process id, %r for the MPI rank (x if unknown), %% for a percent sign.\n"
         "Example: UCI_STATS=/tmp/uci-%h-%r.json",
         "a file name with %h, %p, %r or %%, '-', or nothing", offsetof(uci_settings_t, stats), UCI_SETTING_FILE},

        {"UCI_EVENTS", "",
         "File for a record of each mismatch a process finds: one JSON object a line. Empty: none. The\n"
         "file name may hold %h, %p, %r and %% as in UCI_STATS.",
         "a file name with %h, %p, %r or %%, or nothing", offsetof(uci_settings_t, events), UCI_SETTING_FILE},

        {"UCI_CAPTURE", "",
         "Folder for both versions of damaged chunks in full, as they arrived and as they are right:\n"
         "files <host>.<pid>.<rank>.<number>.bad and .good, of up to 64 chunks and 256 MiB in a process.\n"
         "Records (UCI_EVENTS) name them. Empty: none. The name may hold %h, %p, %r and %% as in UCI_STATS.",
         "a folder with %h, %p, %r or %%, or nothing", offsetof(uci_settings_t, capture), UCI_SETTING_FILE},

        {"UCI_CHECK_SOURCES", "off",
         "With on, the buffer of a send is checksummed again when the send completes: a program that has\n"
         "written to it meanwhile, which MPI forbids, is told so on every path, with a record (UCI_EVENTS).\n"
         "With off this is seen only when a repair, or a copy, reads the buffer again. Costs one more pass\n"
         "over the buffers of large sends. Small ones are copied within the call, and arrive as they were.",
         "[off|on], or 0 or 1", offsetof(uci_settings_t, check_sources), UCI_SETTING_BOOL},

        {"UCI_SIGNATURES", "p2p",
         "Compare the types of what is sent and received, in processes that have a companion which knows\n"
         "them (libuci_mpi, see uci_run --signatures).\n"
         " - off : no.\n"
         " - p2p : of point-to-point messages, by what the messages themselves carry.\n"
         " - all : of collectives too: which one it is, its root, its operation, counts and types. One\n"
         "         small exchange before each of them; each process of the job must have the companion.",
         "[off|p2p|all]", offsetof(uci_settings_t, signatures), UCI_SETTING_ENUM(uci_signatures_names)},

        {"UCI_ON_SIGNATURE", "warn",
         "What to do when types do not match.\n"
         " - warn  : print what was sent and what is received, and go on as MPI does.\n"
         " - abort : the same, and abort the process, and so the job.",
         "[warn|abort]", offsetof(uci_settings_t, on_signature), UCI_SETTING_ENUM(uci_on_changed_names)},

        {"UCI_SIGNATURE_WAIT", "60",
         "With UCI_SIGNATURES=all: after so many seconds in a collective to which other ranks have not\n"
         "come, a line says who waits in what for whom. Nothing is wrong with that if they come later.\n"
         "0: no such line.",
         "seconds, to 1000000", offsetof(uci_settings_t, signature_wait), UCI_SETTING_UINT(0, 1000000)},

        {"UCI_CALLS", "",
         "File of each process about its calls of MPI, in processes that have a companion which sees them\n"
         "(libuci_mpi, see uci_run --profile and --debug): time, number and bytes by place in the program,\n"
         "messages by receiver, and what each thread is in, for uci_report and uci_run. Empty: none. The\n"
         "file name may hold %h, %p, %r and %% as in UCI_STATS.",
         "a file name with %h, %p, %r or %%, or nothing", offsetof(uci_settings_t, calls), UCI_SETTING_FILE},

        {"UCI_CHECK_CALLS", "off",
         "With UCI_CALLS: look at buffers and requests as well. Buffers of pending operations that overlap,\n"
         "buffers of sends that the program changes before they are complete (they are read twice), requests\n"
         "that are never completed, and errors of MPI's are noted in that file.",
         "[off|on], or 0 or 1", offsetof(uci_settings_t, check_calls), UCI_SETTING_BOOL},

        {"UCI_UNBUFFERED", "off",
         "With UCI_CALLS: each standard send (MPI_Send, MPI_Isend, MPI_Send_init) waits for its receive, as\n"
         "MPI may: a program that runs because an MPI has buffers hangs (uci_run --debug=unbuffered).",
         "[off|on], or 0 or 1", offsetof(uci_settings_t, unbuffered), UCI_SETTING_BOOL},

        {"UCI_ALLREDUCE", "auto",
         "MPI_Allreduce by node, in processes that have a companion which does it (libuci_mpi): the ranks of\n"
         "a node add up in shared memory, and each exchanges one part of the sums with the other nodes, so\n"
         "that what goes over the network, and is sealed, is the least possible.\n"
         " - auto : where messages between nodes are sealed and it is expected to be faster.\n"
         " - on   : wherever it is possible.\n"
         " - off  : the MPI's own.\n"
         "Set the same in all processes of a job.",
         "[auto|on|off]", offsetof(uci_settings_t, allreduce), UCI_SETTING_ENUM(uci_settings_allreduce_names)},

        {"UCI_ON_MISMATCH", "continue",
         "What to do at each record of damage, when its cause is known. Debuggers can stop in\n"
         "uci_breakpoint_mismatch() in any case.\n"
         " - continue : go on.\n"
         " - pause    : print host and process id, and wait until a debugger has set uci_mismatch_go to 1,\n"
         "              or until 'kill -CONT <pid>'.",
         "[continue|pause]", offsetof(uci_settings_t, on_mismatch), UCI_SETTING_ENUM(uci_settings_on_mismatch_names)},

        {"UCI_LIVE", "auto",
         "Where each process keeps its statistics while it runs: a small file in memory, which others read\n"
         "(uci_top) and which stays when the process is killed.\n"
         " - auto    : in /dev/shm/uci-UID, where files of processes that ended ten minutes ago, or were\n"
         "             killed an hour ago, are removed.\n"
         " - off     : nowhere.\n"
         " - a folder: there, and nothing is removed. It is made if need be. On a file system that several\n"
         "             hosts share others see the numbers late.",
         "auto, off, or the name of a folder with %h, %p, %r or %%", offsetof(uci_settings_t, live), UCI_SETTING_LIVE},

        {"UCI_SYSLOG", "off",
         "Whether damaged messages are reported to the system's log (journald or syslog) as well, for those\n"
         "who run the machine: a line each with cause, ranks and hosts, at most 10 in a minute from a\n"
         "process, and then how many more there were.",
         "[off|on], or 0 or 1", offsetof(uci_settings_t, syslog), UCI_SETTING_BOOL},

        {"UCI_TWINS", "",
         "This process belongs to twin K (from 0) of N, 2 or 3, runs of the same program, whose ranks\n"
         "compare the messages that they receive (docs/twins.md). They find each other in this folder, which\n"
         "all must see. Empty: there are no twins. uci_run --twins sets it. Twins whose UCI_DIGEST or\n"
         "UCI_CHUNK_SIZE is auto take xxh3 and 32k, so that their digests can be compared.\n"
         "Example: UCI_TWINS=/scratch/me/twins,0/3",
         "FOLDER,K/N, or nothing", offsetof(uci_settings_t, twins), UCI_SETTING_TWINS},

        {"UCI_TWINS_MODE", "compare",
         "What twins do with a message in which they differ.\n"
         " - compare : tell, beside the program: which message, and with three twins who is wrong.\n"
         " - correct : a receive completes when the three twins have voted; the one that is wrong gets the\n"
         "             content that the others have.",
         "[compare|correct]", offsetof(uci_settings_t, twins_mode), UCI_SETTING_ENUM(uci_twins_mode_names)},

        {"UCI_TWINS_WAIT", "60",
         "Seconds that a process waits for its twins: to meet them, for a vote, for a choice that it\n"
         "follows, and at its end. It goes on without one that does not come, with a warning.",
         "1 to 86400 seconds", offsetof(uci_settings_t, twins_wait), UCI_SETTING_UINT(1, 86400)},

        {"UCI_TWINS_LOG", "64m",
         "Memory of a process for what a twin that lags has still to be told. Nobody waits for it beyond\n"
         "that: it is left behind, with a warning. As much again for what is compared, where each sender\n"
         "and tag takes 200 bytes; messages that have no room are counted.",
         "64k to 1024g bytes, <number>[b|k|m|g]", offsetof(uci_settings_t, twins_log),
         UCI_SETTING_SIZE(64 * UCI_KB, 1024 * UCI_GB, false)},

        {"UCI_TWINS_TIME", "off",
         "With on, a program that asks for the time of day, or for random numbers of the system, gets in all\n"
         "twins the answer that the first twin got, so that what it computes from them is the same.",
         "[off|on], or 0 or 1", offsetof(uci_settings_t, twins_time), UCI_SETTING_BOOL},

        {"UCI_TWINS_REPORT", "",
         "File for what a process knows of its twins when it ends, a JSON object: compared, differed,\n"
         "corrected, by whom. Empty: none. The name may hold %h, %p, %r and %% as in UCI_STATS.",
         "a file name with %h, %p, %r or %%, or nothing", offsetof(uci_settings_t, twins_report), UCI_SETTING_FILE},

        {"UCI_SEAL", "off",
         "Protect messages against people, not only accidents (docs/security.md). The same in all ranks:\n"
         "others are refused.\n"
         " - off     : no.\n"
         " - sign    : what was changed, forged, replayed, or sent by somebody without the key, is dropped,\n"
         "             and sent again as if it had been damaged. Others can read it.\n"
         " - encrypt : the same, and nobody without the key can read it.\n"
         "Needs OpenSSL 3 (libcrypto.so.3), UCI_KEY_FILE, and UCI_MODE other than off.",
         "[off|sign|encrypt]", offsetof(uci_settings_t, seal), UCI_SETTING_ENUM(uci_seal_mode_names)},

        {"UCI_SEAL_SCOPE", "net",
         "Which messages UCI_SEAL is for. The same in all ranks.\n"
         " - net : those that leave the node. Between processes of one node they stay as they are.\n"
         " - all : those as well. Then none goes through shared memory of UCI's.",
         "[net|all]", offsetof(uci_settings_t, seal_scope), UCI_SETTING_ENUM(uci_seal_scope_names)},

        {"UCI_KEY_FILE", "",
         "File with the job's key for UCI_SEAL, the same key for all ranks: 64 hexadecimal digits and an\n"
         "end of line. It must belong to the user, and nobody else may be allowed to read it. 'uci_run\n"
         "--seal' makes one for each job; by hand: (umask 077; openssl rand -hex 32 >FILE). A key may serve\n"
         "any number of jobs. The name may hold %h, %p, %r and %% as in UCI_STATS.",
         "a file name with %h, %p, %r or %%, or nothing", offsetof(uci_settings_t, key_file), UCI_SETTING_FILE},

        {"UCI_SEAL_CIPHER", "auto",
         "What UCI_SEAL seals with. The same in all ranks: others are refused.\n"
         " - auto     : aes128 where the CPU has instructions for AES, else chacha20. Where only some nodes\n"
         "              of a job have them, name one.\n"
         " - aes128   : AES-GCM with keys of 128 bits; GMAC with UCI_SEAL=sign.\n"
         " - aes256   : the same with 256 bits.\n"
         " - chacha20 : ChaCha20-Poly1305.",
         "[auto|aes128|aes256|chacha20]", offsetof(uci_settings_t, seal_cipher),
         UCI_SETTING_ENUM(uci_seal_cipher_names)},

        {"UCI_SEAL_LIBRARY", "auto",
         "Whose code UCI_SEAL uses for it; ranks may differ. auto is the one that is fastest on this CPU,\n"
         "of those that are installed; uci_info shows which. Keys are derived by openssl in any case.",
         "[auto|openssl|ipsec-mb]", offsetof(uci_settings_t, seal_library), UCI_SETTING_ENUM(uci_seal_library_names)},

        {"UCI_MERKLE_ARITY", "16",
         "Children of a node in the tree of checksums that finds the damaged chunks of a large message.\n"
         "More children: fewer round trips and more checksums in each. There is seldom a reason to\n"
         "change it.",
         "2 to 256", offsetof(uci_settings_t, merkle_arity), UCI_SETTING_UINT(2, 256)},

        {"UCI_PATH", "auto",
         "How messages that do not fit in one frame travel.\n"
         " - auto   : as uci_tune measured to be fastest for the transport and the size of the message;\n"
         "            otherwise direct between processes of one node that share memory; elsewhere get from\n"
         "            512k on (RDMA: 64k), and stream below; tcp to another host: stream, unless the\n"
         "            link is faster than 10 Gbit/s or its speed is not known.\n"
         " - direct : through slots in shared memory, copied and checked by both sides at the same time;\n"
         "            to a peer that cannot be reached this way: stream.\n"
         " - get    : fetched by the receiver from the sender's buffer, by RDMA where there is any, without\n"
         "            a copy; both sides make checksums beside that. What is not contiguous:\n"
         "            bounce over RDMA, else stream.\n"
         " - bounce : copied with its checksums into buffers that stay registered, fetched from there by\n"
         "            the receiver and copied out: for transports where registering memory takes long.\n"
         " - stream : as UCX active messages, chunk by chunk.",
         "[auto|direct|stream|get|bounce]", offsetof(uci_settings_t, path), UCI_SETTING_ENUM(uci_settings_path_names)},

        {"UCI_CARRIER", "auto",
         "What carries small messages, and what describes large ones.\n"
         " - auto : between processes of one node that share memory a mailbox there (by active message\n"
         "          until it is mapped, and whenever it is full for long); elsewhere am.\n"
         " - am   : UCX active messages.",
         "[auto|am]", offsetof(uci_settings_t, carrier), UCI_SETTING_ENUM(uci_settings_carrier_names)},

        {"UCI_PROFILE", "auto",
         "What is known of this machine's speed, for settings that are auto.\n"
         " - auto  : the profile that uci_tune has made for this CPU model, number of cores and version of\n"
         "           UCX, in the user's cache folder or in /etc/uci; else a short calibration, which the\n"
         "           first process on a host makes (at most 20 ms) and keeps in that folder.\n"
         " - none  : nothing is read or measured; built-in values are used.\n"
         " - a file: that profile; refused with a warning if it is of another machine or UCX.",
         "auto, none, or a file name in which %h is the host", offsetof(uci_settings_t, profile), UCI_SETTING_FILE}};

static uci_setting_source_t uci_settings_sources[uci_array_size(uci_settings_table)];
static char uci_settings_path[PATH_MAX]; /* of the uci.conf that was read */
static uci_status_t uci_settings_status;

#define uci_settings_for_each(_i) for ((_i) = 0; (_i) < uci_array_size(uci_settings_table); ++(_i))

/* @return index of the row called @a name (@a length characters), or the number of rows. */
static size_t uci_settings_find(const char *name, size_t length)
{
    size_t i;

    uci_settings_for_each(i)
    {
        if ((strlen(uci_settings_table[i].name) == length) && (memcmp(uci_settings_table[i].name, name, length) == 0)) {
            break;
        }
    }
    return i;
}

/* Edit distance (Levenshtein), letter case ignored. */
static unsigned uci_settings_distance(const char *one, size_t one_length, const char *other, size_t other_length)
{
    unsigned row[UCI_SETTING_NAME_MAX + 1], diagonal, above;
    size_t i, j;

    one_length   = uci_min(one_length, (size_t)UCI_SETTING_NAME_MAX);
    other_length = uci_min(other_length, (size_t)UCI_SETTING_NAME_MAX);

    for (j = 0; j <= other_length; ++j) {
        row[j] = (unsigned)j;
    }

    for (i = 1; i <= one_length; ++i) {
        diagonal = row[0];
        row[0]   = (unsigned)i;
        for (j = 1; j <= other_length; ++j) {
            above    = row[j];
            row[j]   = uci_min(uci_min(row[j - 1], above) + 1,
                               diagonal + (strncasecmp(&one[i - 1], &other[j - 1], 1) != 0));
            diagonal = above;
        }
    }
    return row[other_length];
}

/* @return @a name without its prefix, so that "MODE" is near to "UCI_MODE". */
static const char *uci_settings_skip_prefix(const char *name, size_t *length_p)
{
    size_t prefix = strlen(UCI_SETTING_PREFIX);

    if ((*length_p < prefix) || (strncasecmp(name, UCI_SETTING_PREFIX, prefix) != 0)) {
        return name;
    }

    *length_p -= prefix;
    return name + prefix;
}

/* "CHUNK" is short for "CHUNK_SIZE", however many letters are missing */
static bool uci_settings_is_short_for(const char *name, size_t length, const char *known, size_t known_length)
{
    return (length >= UCI_SETTING_SHORT_MIN) && (length < known_length) && (strncasecmp(name, known, length) == 0);
}

static const char *uci_settings_nearest(const char *name, size_t length)
{
    unsigned best_distance = UINT_MAX, distance;
    const char *best       = NULL, *known;
    size_t i, known_length;

    name = uci_settings_skip_prefix(name, &length);
    uci_settings_for_each(i)
    {
        known_length = strlen(uci_settings_table[i].name);
        known        = uci_settings_skip_prefix(uci_settings_table[i].name, &known_length);
        distance     = uci_settings_is_short_for(name, length, known, known_length)
                               ? 1
                               : uci_settings_distance(name, length, known, known_length);
        if (distance < best_distance) {
            best_distance = distance;
            best          = uci_settings_table[i].name;
        }
    }
    return best;
}

/*
 * Sources. They are gathered first and judged when the log level is known; names nobody knows are written to
 * the stream `unknown` meanwhile.
 */

static void uci_settings_set_source(size_t i, const char *text, unsigned line)
{
    free(uci_settings_sources[i].text);
    uci_settings_sources[i].text = strdup(text); /* without memory, the default stays in force */
    uci_settings_sources[i].line = line;
}

static char *uci_settings_trim(char *text)
{
    char *end;

    text += strspn(text, " \t\r\n");
    for (end = text + strlen(text); (end > text) && (strchr(" \t\r\n", end[-1]) != NULL); --end) {
    }
    *end = '\0';
    return text;
}

/* @return false if it is not valid */
static bool uci_settings_read_line(char *text, unsigned line, FILE *unknown)
{
    char *name = uci_settings_trim(text), *value;
    size_t i;

    if ((*name == '\0') || (*name == '#')) {
        return true;
    }

    value = strchr(name, '=');
    if (value == NULL) {
        uci_error("'%s' at %s:%u is not valid: expected NAME=value", name, uci_settings_path, line);
        uci_settings_status = UCI_ERR_INVALID_PARAM;
        return false;
    }

    *value++ = '\0';
    name     = uci_settings_trim(name);
    i        = uci_settings_find(name, strlen(name));
    if (i == uci_array_size(uci_settings_table)) {
        fprintf(unknown, ", %s at %s:%u (nearest: %s)", name, uci_settings_path, line,
                uci_settings_nearest(name, strlen(name)));
        return true;
    }
    uci_settings_set_source(i, uci_settings_trim(value), line);
    return true;
}

/* @return the text of the file, to be freed, or NULL; that it does not exist, or may not be opened, is an error only if it @a must. */
static char *uci_settings_load(const char *directory, const char *name, bool must, size_t *length_p)
{
    uci_status_t status;
    char *text;

    snprintf(uci_settings_path, sizeof(uci_settings_path), "%s%s", directory, name);
    status = uci_file_read(uci_settings_path, UCI_SETTINGS_FILE_MAX, &text, length_p);
    if (status == UCI_OK) {
        return text;
    }

    if (must) {
        uci_error("cannot read %s, named by " UCI_SETTING_CONFIG_FILE ": %s", uci_settings_path, uci_file_error(errno));
        uci_settings_status = UCI_ERR_IO;
    } else if (errno == EACCES) {
        uci_warn("cannot read %s: %s", uci_settings_path, uci_file_error(errno));
    } else if (status != UCI_ERR_NO_ELEM) {
        uci_error("cannot read %s: %s", uci_settings_path, uci_file_error(errno));
        uci_settings_status = UCI_ERR_IO;
    }
    return NULL;
}

/* @return text of uci.conf, to be freed, or NULL if there is none. */
static char *uci_settings_load_file(size_t *length_p)
{
    const char *named = getenv(UCI_SETTING_CONFIG_FILE), *home = getenv("HOME");
    char *text = NULL;

    if (named != NULL) {
        return (*named == '\0') ? NULL : uci_settings_load("", named, true, length_p);
    }

    if ((home != NULL) && (*home != '\0')) {
        text = uci_settings_load(home, "/.uci.conf", false, length_p);
    }
    return (text != NULL) ? text : uci_settings_load("", "/etc/uci/uci.conf", false, length_p);
}

/* What is no uci.conf at all would have an error for each line */
static void uci_settings_read_file(FILE *unknown)
{
    size_t length = 0;
    char *text    = uci_settings_load_file(&length), *line, *end;
    unsigned bad = 0, number = 0;

    if (text == NULL) {
        return;
    }
    line = text + ((strncmp(text, UCI_SETTINGS_MARK, strlen(UCI_SETTINGS_MARK)) == 0) ? strlen(UCI_SETTINGS_MARK) : 0);
    for (; (line < text + length) && (bad < UCI_SETTINGS_BAD_LINES_MAX); line = end + 1) {
        end = memchr(line, '\n', length - (size_t)(line - text));
        if (end == NULL) {
            end = text + length;
        }
        *end = '\0';
        bad += !uci_settings_read_line(line, ++number, unknown);
    }
    if (bad == UCI_SETTINGS_BAD_LINES_MAX) {
        uci_error("%s is not read further than line %u", uci_settings_path, number);
    }
    free(text);
}

static void uci_settings_read_environment(FILE *unknown)
{
    char **variable;
    size_t i, length;

    for (variable = environ; (variable != NULL) && (*variable != NULL); ++variable) {
        length = strcspn(*variable, "=");
        if ((strncmp(*variable, UCI_SETTING_PREFIX, strlen(UCI_SETTING_PREFIX)) != 0) ||
            ((length == strlen(UCI_SETTING_CONFIG_FILE)) &&
             (memcmp(*variable, UCI_SETTING_CONFIG_FILE, length) == 0))) {
            continue;
        }

        i = uci_settings_find(*variable, length);
        if (i == uci_array_size(uci_settings_table)) {
            fprintf(unknown, ", %.*s in the environment (nearest: %s)", (int)length, *variable,
                    uci_settings_nearest(*variable, length));
        } else if ((*variable)[length] == '=') {
            uci_settings_set_source(i, *variable + length + 1, 0);
        }
    }
}

static void uci_settings_print_source(size_t i, FILE *stream)
{
    if (uci_settings_sources[i].text == NULL) {
        fprintf(stream, "default");
    } else if (uci_settings_sources[i].line == 0) {
        fprintf(stream, "environment");
    } else {
        fprintf(stream, "%s:%u", uci_settings_path, uci_settings_sources[i].line);
    }
}

static void uci_settings_log_bad_value(size_t i, const char *error)
{
    const uci_setting_source_t *source = &uci_settings_sources[i];

    if (source->line == 0) {
        uci_error("%s=%s in the environment is not valid: %s", uci_settings_table[i].name, source->text, error);
    } else {
        uci_error("%s=%s at %s:%u is not valid: %s", uci_settings_table[i].name, source->text, uci_settings_path,
                  source->line, error);
    }
}

/* A bad value is replaced by the default, so that what is printed from now on can rely on uci_settings. */
static void uci_settings_set_value(size_t i)
{
    const uci_setting_t *setting = &uci_settings_table[i];
    uci_setting_source_t *source = &uci_settings_sources[i];
    void *value                  = (char *)&uci_settings + setting->offset;
    char error[UCI_SETTING_ERROR_MAX];

    if (source->text != NULL) {
        snprintf(error, sizeof(error), "expected %s", setting->syntax);
        if (setting->parse(setting, source->text, value, error, sizeof(error)) == UCI_OK) {
            return;
        }
        uci_settings_log_bad_value(i, error);
        uci_settings_status = UCI_ERR_INVALID_PARAM;
        free(source->text);
        source->text = NULL;
    }

    if (setting->parse(setting, setting->default_text, value, error, sizeof(error)) != UCI_OK) {
        uci_fatal("the default of %s is not valid", setting->name);
    }
}

/* Digests can be compared if they are formed alike: what each twin would choose for itself, by what it has measured, is settled */
static void uci_settings_make_alike(void)
{
    if (uci_settings.twins.folder == NULL) {
        return;
    }
    if (uci_settings.digest == &uci_digest_auto) {
        uci_settings.digest = uci_digest_by_id(UCI_DIGEST_XXH3);
    }
    if (uci_settings.chunk_size == UCI_SETTING_AUTO) {
        uci_settings.chunk_size = UCI_TWINS_CHUNK;
    }
}

/* Two have no majority. A site may have the mode in its file: without twins it means nothing. */
static void uci_settings_check_twins(void)
{
    if ((uci_settings.twins_mode == UCI_TWINS_CORRECT) && (uci_settings.twins.of == UCI_TWINS_MIN)) {
        uci_error(
                "UCI_TWINS_MODE=correct needs three twins, which can vote, and UCI_TWINS says %u/%u: start three, or set "
                "UCI_TWINS_MODE=compare",
                uci_settings.twins.twin, uci_settings.twins.of);
        uci_settings_status     = UCI_ERR_INVALID_PARAM;
        uci_settings.twins_mode = UCI_TWINS_COMPARE;
    }
}

/* Sealing is not left out in silence because something else is off */
static void uci_settings_check_seal(void)
{
    if ((uci_settings.seal != UCI_SEAL_OFF) && (uci_settings.mode == UCI_MODE_OFF)) {
        uci_error("UCI_SEAL=%s needs UCI_MODE=repair or detect, and UCI_MODE is off: nothing would be sealed",
                  uci_seal_mode_names[uci_settings.seal]);
        uci_settings_status = UCI_ERR_INVALID_PARAM;
    }
}

static void uci_settings_set_values(void)
{
    size_t i;

    uci_digest_init(); /* the table of digests must be there to be searched */
    uci_settings_for_each(i)
    {
        uci_settings_set_value(i);
        uci_log_level = uci_settings.log_level; /* the first row: in force from now on */
    }
    uci_settings_check_twins();
    uci_settings_check_seal();
    uci_settings_make_alike();
}

static void uci_settings_read_all(void)
{
    char *text = NULL;
    size_t length;
    FILE *unknown;

    unknown = open_memstream(&text, &length);
    if (unknown == NULL) {
        uci_error("cannot read the settings: %m");
        uci_settings_status = UCI_ERR_NO_MEMORY;
        uci_settings_set_values();
        return;
    }

    uci_settings_read_file(unknown);
    uci_settings_read_environment(unknown); /* second: it wins */
    uci_settings_set_values();

    if ((fclose(unknown) == 0) && (length > 0)) {
        uci_warn("unknown settings: %s", text + strlen(", "));
    }
    free(text);
}

uci_status_t uci_settings_read(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, uci_settings_read_all);
    return uci_settings_status;
}

static void uci_settings_print_doc(size_t i, FILE *stream)
{
    const uci_setting_t *setting = &uci_settings_table[i];
    const char *line             = setting->doc, *end;

    fprintf(stream, "#\n");
    for (end = strchrnul(line, '\n'); *line != '\0'; end = strchrnul(line, '\n')) {
        fprintf(stream, "# %.*s\n", (int)(end - line), line);
        line = (*end == '\0') ? end : end + 1;
    }
    fprintf(stream, "#\n");
    fprintf(stream, "# syntax:    %s\n", setting->syntax);
    fprintf(stream, "# default:   %s\n", (*setting->default_text == '\0') ? "(empty)" : setting->default_text);
    fprintf(stream, "# set by:    ");
    uci_settings_print_source(i, stream);
    fprintf(stream, "\n#\n");
}

void uci_settings_print(FILE *stream, unsigned flags)
{
    const uci_setting_t *setting;
    size_t i;

    uci_settings_for_each(i)
    {
        setting = &uci_settings_table[i];
        if (flags & UCI_SETTINGS_PRINT_DOC) {
            uci_settings_print_doc(i, stream);
        }
        if (flags & UCI_SETTINGS_PRINT_VALUE) {
            fprintf(stream, "%s=", setting->name);
            setting->print(setting, (const char *)&uci_settings + setting->offset, stream);
            fprintf(stream, "\n");
        }
        if (flags & UCI_SETTINGS_PRINT_DOC) {
            fprintf(stream, "\n");
        }
    }
}

void uci_settings_for_each_set(uci_settings_func_t func, void *arg)
{
    char *value, *source;
    size_t i, length;
    FILE *stream;

    uci_settings_for_each(i)
    {
        value = source = NULL;
        if (uci_settings_sources[i].text == NULL) {
            continue;
        }
        if ((stream = open_memstream(&value, &length)) != NULL) {
            uci_settings_table[i].print(&uci_settings_table[i], (char *)&uci_settings + uci_settings_table[i].offset,
                                        stream);
            fclose(stream);
        }
        if ((stream = open_memstream(&source, &length)) != NULL) {
            uci_settings_print_source(i, stream);
            fclose(stream);
        }
        if ((value != NULL) && (source != NULL)) {
            func(uci_settings_table[i].name, value, source, arg);
        }
        free(value);
        free(source);
    }
}
