/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * uci_check: messages to and from another uci_check, through two pipes: each has its length in front, as 32 bits.
 */
#ifndef UCI_CHECK_PIPE_H_
#define UCI_CHECK_PIPE_H_

#include <sys/types.h>

#include "check_report.h"

typedef struct uci_check_pipe {
    int in, out;
    pid_t pid; /**< what was started at the other end; 0: nothing was */
    uci_check_moved_t moved;
} uci_check_pipe_t;

/**
 * Start uci_check at @a host.
 * @param rsh      command that starts one there, its words between blanks: "ssh", "ssh -p 2222".
 * @param program  uci_check's name there.
 * @return false if that failed (said).
 */
bool uci_check_pipe_start(uci_check_pipe_t *pipe, const char *rsh, const char *host, const char *program);

/** The other end: messages go through stdin and stdout. */
void uci_check_pipe_serve(uci_check_pipe_t *pipe);

/** Close the pipes and wait for what was started. */
void uci_check_pipe_close(uci_check_pipe_t *pipe);

/** Send a message and receive one, at the same time; a uci_merkle_swap_func_t. */
uci_status_t uci_check_pipe_swap(void *arg, const void *out, size_t out_length, void *in, size_t in_max,
                                 size_t *in_length_p);

#endif
