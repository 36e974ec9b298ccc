/* SPDX-License-Identifier: BSD-3-Clause */
#include "seal_spec.h"

const char *const uci_seal_mode_names[]    = {"off", "sign", "encrypt", NULL};
const char *const uci_seal_scope_names[]   = {"net", "all", NULL};
const char *const uci_seal_cipher_names[]  = {"auto", "aes128", "aes256", "chacha20", NULL};
const char *const uci_seal_library_names[] = {"auto", "openssl", "ipsec-mb", NULL};
