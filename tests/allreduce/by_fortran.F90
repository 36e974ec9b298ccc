! SPDX-License-Identifier: BSD-3-Clause
!
! All-reduces by Fortran's bindings, with one buffer and with two. Compiled for each: -DBY_MPIFH, -DBY_MPI or -DBY_MPI_F08, and -DBINDING='its name'.
program by_fortran
#ifdef BY_MPI
    use mpi
#endif
#ifdef BY_MPI_F08
    use mpi_f08
#endif
    implicit none
#ifdef BY_MPIFH
    include 'mpif.h'
#endif
    integer, parameter :: number = 5000
    double precision :: sent(number), sums(number)
    integer :: counts(number)
    integer :: rank, ranks, i, j, error

    call MPI_Init(error)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
    call MPI_Comm_size(MPI_COMM_WORLD, ranks, error)
    do i = 1, 20
        do j = 1, number
            sent(j) = j + i + rank
            counts(j) = j * (rank + 1)
        end do
        sums = 0
        call MPI_Allreduce(sent, sums, number, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, error)
        call MPI_Allreduce(MPI_IN_PLACE, counts, number, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD, error)
        do j = 1, number
            if (sums(j) /= ranks * (j + i) + ranks * (ranks - 1) / 2 .or. counts(j) /= j * ranks) then
                print *, 'wrong: ', i, j, sums(j), counts(j)
                call MPI_Abort(MPI_COMM_WORLD, 3, error)
            end if
        end do
    end do
    if (rank == 0) print '(a)', 'PASS '//BINDING
    call MPI_Finalize(error)
end program
