/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A library by the name of one that comes with GPUs.
 */
extern int no_gpu;

int no_gpu = 1;
