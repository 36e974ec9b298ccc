/* SPDX-License-Identifier: BSD-3-Clause */
#include "ucp_api.h"

uci_ucp_t uci_ucp;
