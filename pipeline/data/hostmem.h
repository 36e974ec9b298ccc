/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Which addresses are the host's memory for certain, without asking UCX: for programs that have devices with memory of their own, and
 * send mostly from the host's.
 *
 * Always the host's, and told by comparing addresses:
 *
 *     the stack of the calling thread, from where it is now up to its beginning: in use, so never unmapped
 *     the program's variables: mapped with it, and as long as it runs
 *     the heap that brk() moves, up to where it ends now: the kernel puts nothing else there, and device drivers, whose memory
 *         lies in mappings of theirs, use mmap()
 *
 * All other memory is in mappings, which may be unmapped, and a device's memory may come to lie there. Pages that UCX has called the
 * host's are remembered, and each time one of them is used the kernel is asked whether this process may read it still: one system
 * call (measured: 0.25 us; UCX takes 0.9 us where it registers memory with no device, and far longer where it does). If not, it is
 * somebody else's now: cudaMalloc() and its relatives reserve addresses that the processor can't read. If so, it may be managed
 * memory, but then the processor may read and write it like the host's own, only more slowly.
 *
 * The last conclusion is true of CUDA, and not known of other devices: some show theirs to the processor through a window, and their
 * caches must be told. So pages are to be remembered for contexts with no other types than CUDA's (uci_memtype_keeps_host()).
 *
 * A page of 4 KiB is of one type, and so is a buffer: its first byte tells, as it does to UCX. All is thread safe.
 */
#ifndef UCI_HOSTMEM_H_
#define UCI_HOSTMEM_H_

#include "util/types.h"

/** @return whether @a address is the host's, whatever happens; false: it may be. Some 10 ns. */
bool uci_hostmem_is_fixed(const void *address);

/** Remember that the page of @a address is the host's. */
void uci_hostmem_remember(const void *address);

/** @return whether the page of @a address is remembered, and this process may read it still; otherwise it is forgotten. */
bool uci_hostmem_is_remembered(const void *address);

#endif
