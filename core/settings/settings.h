/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Settings: each is a row of one table (name, default, documentation, parser). Sources, first wins: the
 * environment (UCI_*), then uci.conf, read as UCX reads ucx.conf: "NAME=value" lines, '#' comments, from the
 * file named by UCI_CONFIG_FILE (it must exist; an empty name means no file), else the first there is of
 * $HOME/.uci.conf and /etc/uci/uci.conf: a regular file of at most 1 MiB, or /dev/null. ./uci.conf is NOT read.
 * A comment has its own line: a '#' in a value is part of it.
 */
#ifndef UCI_SETTINGS_H_
#define UCI_SETTINGS_H_

#include <stdio.h>
#include "util/types.h"
#include "uci_allreduce.h"
#include "uci_signature.h"
#include "digest/digest.h"
#include "fault/fault.h"
#include "util/log.h"
#include "util/parse_size.h"
#include "util/path_id.h"
#include "seal_spec.h"
#include "twin_spec.h"

typedef enum { UCI_MODE_OFF, UCI_MODE_DETECT, UCI_MODE_REPAIR, UCI_MODE_LAST } uci_mode_t;
typedef enum { UCI_ON_ERROR_ABORT, UCI_ON_ERROR_ERROR, UCI_ON_ERROR_LOG, UCI_ON_ERROR_LAST } uci_on_error_t;
typedef enum { UCI_ON_CHANGED_WARN, UCI_ON_CHANGED_ABORT, UCI_ON_CHANGED_LAST } uci_on_changed_t;
typedef enum { UCI_ON_MISMATCH_CONTINUE, UCI_ON_MISMATCH_PAUSE } uci_on_mismatch_t;

/** Names by value, NULL-terminated. */
extern const char *const uci_mode_names[];
extern const char *const uci_on_error_names[];
extern const char *const uci_on_changed_names[];
extern const char *const uci_signatures_names[]; /* as uci_signatures_t */

#define UCI_SETTING_AUTO UCI_SIZE_AUTO /**< a size that is chosen per transport */

/** What UCI_CHUNK_SIZE may be, and so what a peer may say of its chunks */
#define UCI_CHUNK_SIZE_MIN 256u
#define UCI_CHUNK_SIZE_MAX (16u << 20)

/** What moves frames (small messages, and what describes large ones). */
typedef enum {
    UCI_CARRIER_AUTO, /**< between processes of one node a mailbox in shared memory, else active messages */
    UCI_CARRIER_AM    /**< active messages */
} uci_carrier_t;

typedef struct uci_settings {
    uci_mode_t mode;                /**< UCI_MODE=off|detect|repair */
    bool require;                   /**< UCI_REQUIRE=off|on */
    unsigned connect_wait;          /**< UCI_CONNECT_WAIT=seconds; 0: connections by socket address pass */
    bool banner;                    /**< UCI_BANNER=off|on */
    const uci_digest_ops_t *digest; /**< UCI_DIGEST=auto|xxh3|...; auto is &uci_digest_auto */
    size_t chunk_size;              /**< UCI_CHUNK_SIZE=auto|bytes (memory units: 64k, 1m), 256..16m */
    size_t eager_max;               /**< UCI_EAGER_MAX=auto|bytes, 0..32k: payload carried in one frame */
    size_t log_size;                /**< UCI_LOG_SIZE=bytes: soft limit of unacknowledged copies per worker */
    uci_log_level_t log_level;      /**< UCI_LOG_LEVEL */
    uci_on_error_t on_error;        /**< UCI_ON_ERROR=abort|error|log */
    uci_on_changed_t on_changed;    /**< UCI_ON_CHANGED=warn|abort */
    uci_fault_spec_t fault;         /**< UCI_FAULT */
    char *stats;                    /**< UCI_STATS: "", "-", or a pattern for uci_process_expand() */
    char *events;                   /**< UCI_EVENTS: JSON lines of mismatch records, "" or such a pattern */
    char *capture;                  /**< UCI_CAPTURE: folder for damaged chunks, "" or such a pattern */
    uci_signatures_t signatures;    /**< UCI_SIGNATURES=off|p2p|all */
    unsigned signature_wait;        /**< UCI_SIGNATURE_WAIT: seconds; 0: never */
    uci_on_changed_t on_signature;  /**< UCI_ON_SIGNATURE=warn|abort */
    char *calls;                    /**< UCI_CALLS: "", or a pattern for uci_process_expand() */
    bool check_calls;               /**< UCI_CHECK_CALLS=off|on */
    bool unbuffered;                /**< UCI_UNBUFFERED=off|on */
    uci_allreduce_t allreduce;      /**< UCI_ALLREDUCE=auto|on|off */
    bool check_sources;             /**< UCI_CHECK_SOURCES=off|on */
    uci_on_mismatch_t on_mismatch;  /**< UCI_ON_MISMATCH=continue|pause */
    char *live;                     /**< UCI_LIVE: "auto", "off", or a pattern for uci_process_expand() */
    bool syslog;                    /**< UCI_SYSLOG=off|on */
    uci_twin_spec_t twins;          /**< UCI_TWINS=FOLDER,K/N */
    uci_twins_mode_t twins_mode;    /**< UCI_TWINS_MODE=compare|correct; correct only with three twins */
    unsigned twins_wait;            /**< UCI_TWINS_WAIT=seconds, 1..86400 */
    size_t twins_log;               /**< UCI_TWINS_LOG=bytes: kept for a twin that lags */
    bool twins_time;                /**< UCI_TWINS_TIME=off|on */
    char *twins_report;             /**< UCI_TWINS_REPORT: "", or a pattern for uci_process_expand() */
    uci_seal_mode_t seal;           /**< UCI_SEAL=off|sign|encrypt */
    uci_seal_scope_t seal_scope;    /**< UCI_SEAL_SCOPE=net|all */
    char *key_file;                 /**< UCI_KEY_FILE: "", or a pattern for uci_process_expand() */
    uci_seal_cipher_t seal_cipher;  /**< UCI_SEAL_CIPHER=auto|aes128|aes256|chacha20 */
    uci_seal_lib_t seal_library;    /**< UCI_SEAL_LIBRARY=auto|openssl|ipsec-mb */
    unsigned merkle_arity;          /**< UCI_MERKLE_ARITY=2..256 */
    uci_carrier_t carrier;          /**< UCI_CARRIER=auto|am */
    uci_path_t path;                /**< UCI_PATH=auto|direct|stream|get */
    char *profile;                  /**< UCI_PROFILE: "auto", "none", or a pattern for uci_process_expand() */
} uci_settings_t;

/** The process's settings; valid after uci_settings_read(), with the default wherever a value was bad. */
extern uci_settings_t uci_settings;

/**
 * Read all settings, set uci_log_level. Idempotent (the first call's status is returned again), thread safe.
 * @return UCI_OK, UCI_ERR_IO (logged) if uci.conf cannot be read, or UCI_ERR_INVALID_PARAM after logging, for
 *         each bad value, the variable, the value, where it came from and what is allowed. Unknown UCI_*
 *         variables and unknown names in uci.conf are warned of, with the nearest known name.
 */
uci_status_t uci_settings_read(void);

/** Flags of uci_settings_print() */
enum {
    UCI_SETTINGS_PRINT_VALUE = 1, /**< "UCI_MODE=repair" */
    UCI_SETTINGS_PRINT_DOC   = 2, /**< preceded by a comment block: documentation, syntax, default, source */
};

/** Print the settings in force, in the syntax of uci.conf. */
void uci_settings_print(FILE *stream, unsigned flags);

/** Called for each setting that has been set: its value as it is in force, and where from ("environment", "/etc/uci/uci.conf:3"). */
typedef void (*uci_settings_func_t)(const char *name, const char *value, const char *source, void *arg);

/** Call @a func for each setting that is not its default because somebody has set it. */
void uci_settings_for_each_set(uci_settings_func_t func, void *arg);

#endif
