/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Two receives that are under way into the same memory: a program's mistake (MPI 4.0, 3.7.2), of which each sees as damage what the other
 * brings. So do OSU's programs for bandwidth, whose messages are all alike.
 */
#ifndef UCI_RECV_OVERLAP_H_
#define UCI_RECV_OVERLAP_H_

#include "recv_op_part.h"

/** Note in @a op another receive of its worker, of more than one frame, into memory that it receives into. Only buffers that are contiguous
 *  are looked at; one that is over is not seen. Takes time by the number of receives under way. */
void uci_recv_overlap_find(uci_recv_op_t *op);

#endif
