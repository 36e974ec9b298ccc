/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The ways a message can take, as settings, profiles and statistics name them.
 */
#ifndef UCI_PATH_ID_H_
#define UCI_PATH_ID_H_

/** Ways a message can take to another process. Ids are not on the wire. */
typedef enum {
    UCI_PATH_AUTO,   /**< UCI_PATH=auto: whichever is best */
    UCI_PATH_DIRECT, /**< through slots in shared memory: same node only */
    UCI_PATH_STREAM, /**< chunks as active messages: everywhere */
    UCI_PATH_GET,    /**< pulled by the receiver from the sender's buffer */
    UCI_PATH_BOUNCE, /**< through registered bounce buffers */
    UCI_PATH_EAGER,  /**< in one frame */
    UCI_PATH_LAST
} uci_path_t;

#define UCI_PATH_BIT(_path) (1u << (_path))

/** Names by value, NULL-terminated. */
extern const char *const uci_path_names[];

#endif
