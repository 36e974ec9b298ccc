/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * How much UCX's tcp sends at a time. It cuts active messages and eager messages into pieces of 8 KiB, one send() each, though every
 * receiver takes 64 KiB (UCX_TCP_TX_SEG_SIZE, UCX_TCP_RX_SEG_SIZE of UCX 1.13 to 1.23). UCI's frames and chunks are messages of
 * that kind. In one piece 16 KiB take 8.4 us instead of 15.1 and 32 KiB 11.7 instead of 26.9 [ping-pong over loopback, UCX 1.13.1].
 */
#ifndef UCI_TCP_SEGMENT_H_
#define UCI_TCP_SEGMENT_H_

#include "ucp/ucp_api.h"

/**
 * Have the workers that will be made of this context send 64 KiB at a time, if it has tcp and the user has set neither of the two
 * variables, in the environment or in a ucx.conf. UCX_TCP_TX_SEG_SIZE is in this process's environment then: UCX has no other way to
 * change a setting of a transport that loses none of the program's own (ucp_config_modify() is for the program's configuration, which is
 * const in ucp_init() and can't be copied), and warns of a variable that no transport uses, so that it can't be set before the transports are
 * known. setenv() would race with getenv() of other threads: so the variable is put there when the library is loaded, under a name that
 * nobody asks for, and storing one byte makes it the right one.
 */
void uci_tcp_segment_widen(ucp_context_h ucp);

#endif
