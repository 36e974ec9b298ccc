/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * What only measurements want of intel-ipsec-mb.
 */
#ifndef UCI_SEAL_IPSEC_MB_H_
#define UCI_SEAL_IPSEC_MB_H_

#include "util/types.h"

/** Set before the library is opened: use no VAES, as on a CPU that has none. */
extern bool uci_ipsec_mb_without_vaes;

#endif
