/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The basic datatypes of MPI, and the code that stands for each in a signature. Codes are the same whatever the MPI, so what is not there has
 * one all the same: a new one goes to the end.
 */
#ifndef UCI_MPI_BASIC_TYPES_H_
#define UCI_MPI_BASIC_TYPES_H_

#include <mpi.h>

#include "signature/signature.h"

/** Codes of what Fortran's MPI_Type_create_f90_... make begin here; the precision is added. */
#define UCI_MPI_F90_REAL    0x1000u
#define UCI_MPI_F90_COMPLEX 0x1100u
#define UCI_MPI_F90_INTEGER 0x1200u
#define UCI_MPI_F90_LAST    0x12ffu
#define UCI_MPI_F90_MAX     0xff /**< precisions above are taken for this one */

/** @return the name of a code, see uci_signature_ops_t. */
const char *uci_mpi_code_name(unsigned code);

/** Make the type of a predefined datatype. @return UCI_OK; UCI_ERR_NO_ELEM: it is none; UCI_ERR_NO_MEMORY. */
uci_status_t uci_mpi_basic_type(MPI_Datatype datatype, uci_sigtype_t **type_p);

#endif
