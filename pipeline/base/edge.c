/* SPDX-License-Identifier: BSD-3-Clause */
#include "edge.h"

uci_edge_t uci_edge;
