/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Errors that this host's RDMA ports have counted while this process ran.
 */
#ifndef UCI_PORT_ERRORS_H_
#define UCI_PORT_ERRORS_H_

#include "util/json_writer.h"
#include "tune/rdma.h"

/** Note what they have counted so far; without it, all is since boot. Only the first call counts. */
void uci_port_errors_init(void);

/** "boot", or "this process began". */
const char *uci_port_errors_since(void);

/** Look at them now. About 10 KiB; some 10 us a counter. @return NULL: there are no ports, or no memory. To be freed. */
uci_rdma_sample_t *uci_port_errors_now(void);

/** For people: "mlx5_0:1 symbol_error 3", "none", or "" if @a now is NULL. */
void uci_port_errors_print(const uci_rdma_sample_t *now, char *text, size_t size);

/** As a member: {"mlx5_0:1": {"symbol_error": 3}}, {} if there are none, null if @a now is NULL. */
void uci_port_errors_write(const uci_rdma_sample_t *now, uci_json_t *json, const char *name);

#endif
