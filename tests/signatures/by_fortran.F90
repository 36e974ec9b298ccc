! SPDX-License-Identifier: BSD-3-Clause
!
! Messages by Fortran's bindings: each call is seen once. As cases.c, rank 1 prints what is to be told. Compiled for each of the three, as
! by_mpifh, by_mpi and by_mpi_f08: BINDING is that name, and one of BY_MPIFH, BY_MPI and BY_MPI_F08 is defined.
program by_fortran
#if defined(BY_MPI_F08)
  use mpi_f08
#elif defined(BY_MPI)
  use mpi
#endif
  implicit none
#if defined(BY_MPIFH)
  include 'mpif.h'
#endif
  integer :: rank, ierr, i, compared, flag_round
  integer :: ints(8)
  real :: reals(8)
  double precision :: doubles(4)
#if defined(BY_MPI_F08)
  type(MPI_Status) :: status
  type(MPI_Datatype) :: vector
  type(MPI_Request) :: requests(2), request
  type(MPI_Message) :: message
#else
  integer :: status(MPI_STATUS_SIZE)
  integer :: vector
  integer :: requests(2), request
  integer :: message
#endif

  compared = 0
  ints = 0
  reals = 0
  doubles = 0
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Type_vector(2, 1, 2, MPI_INTEGER, vector, ierr)
  call MPI_Type_commit(vector, ierr)

  ! blocking
  if (rank == 0) then
     call MPI_Send(ints, 4, MPI_INTEGER, 1, 1, MPI_COMM_WORLD, ierr)
     call MPI_Ssend(ints, 4, MPI_INTEGER, 1, 2, MPI_COMM_WORLD, ierr)
     call MPI_Send(ints, 2, vector, 1, 3, MPI_COMM_WORLD, ierr)
     call MPI_Send(doubles, 2, MPI_DOUBLE_PRECISION, 1, 4, MPI_COMM_WORLD, ierr)
  else
     call MPI_Recv(ints, 8, MPI_INTEGER, 0, 1, MPI_COMM_WORLD, status, ierr)
     call MPI_Recv(reals, 4, MPI_REAL, 0, 2, MPI_COMM_WORLD, status, ierr)
     print '(A)', '2|MPI_Recv|4 x MPI_INTEGER|4 x MPI_REAL'
     call MPI_Recv(ints, 4, MPI_INTEGER, 0, 3, MPI_COMM_WORLD, status, ierr)
     call MPI_Recv(doubles, 2, MPI_REAL8, 0, 4, MPI_COMM_WORLD, status, ierr)
     print '(A)', '4|MPI_Recv|2 x MPI_DOUBLE_PRECISION|2 x MPI_REAL8'
  end if
  compared = compared + 4

  ! nonblocking
  if (rank == 0) then
     call MPI_Isend(ints, 4, MPI_INTEGER, 1, 5, MPI_COMM_WORLD, requests(1), ierr)
     call MPI_Issend(reals, 4, MPI_REAL, 1, 6, MPI_COMM_WORLD, requests(2), ierr)
  else
     call MPI_Irecv(ints, 4, MPI_INTEGER, 0, 5, MPI_COMM_WORLD, requests(1), ierr)
     call MPI_Irecv(doubles, 2, MPI_DOUBLE_PRECISION, 0, 6, MPI_COMM_WORLD, requests(2), ierr)
     print '(A)', '6|MPI_Irecv|4 x MPI_REAL|2 x MPI_DOUBLE_PRECISION'
  end if
  call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, ierr)
  compared = compared + 2

  ! persistent
  if (rank == 0) then
     call MPI_Send_init(ints, 4, MPI_INTEGER, 1, 7, MPI_COMM_WORLD, requests(1), ierr)
     call MPI_Send_init(ints, 4, MPI_INTEGER, 1, 8, MPI_COMM_WORLD, requests(2), ierr)
  else
     call MPI_Recv_init(ints, 4, MPI_INTEGER, 0, 7, MPI_COMM_WORLD, requests(1), ierr)
     call MPI_Recv_init(reals, 4, MPI_REAL, 0, 8, MPI_COMM_WORLD, requests(2), ierr)
  end if
  do i = 1, 2
     if (i == 1) then
        call MPI_Startall(2, requests, ierr)
     else
        call MPI_Start(requests(1), ierr)
        call MPI_Start(requests(2), ierr)
     end if
     call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, ierr)
     if (rank == 1) print '(A)', '8|MPI_Recv_init|4 x MPI_INTEGER|4 x MPI_REAL'
     compared = compared + 2
  end do
  call MPI_Request_free(requests(1), ierr)
  call MPI_Request_free(requests(2), ierr)

  ! both ways, and matched probes
  do i = 1, 2
     flag_round = 8 + i
     if (rank == 0 .and. i == 2) then
        call MPI_Sendrecv(reals, 2, MPI_REAL, 1, flag_round, ints, 2, MPI_INTEGER, 1, flag_round, MPI_COMM_WORLD, &
             status, ierr)
     else
        call MPI_Sendrecv(ints, 2, MPI_INTEGER, 1 - rank, flag_round, ints(3), 2, MPI_INTEGER, 1 - rank, flag_round, &
             MPI_COMM_WORLD, status, ierr)
     end if
     compared = compared + 1
     if (rank == 0) then
        call MPI_Send(ints, 2, MPI_INTEGER, 1, 10 + i, MPI_COMM_WORLD, ierr)
     else
        call MPI_Mprobe(0, 10 + i, MPI_COMM_WORLD, message, status, ierr)
        if (i == 1) then
           call MPI_Mrecv(ints, 2, MPI_INTEGER, message, status, ierr)
        else
           call MPI_Imrecv(reals, 2, MPI_REAL, message, request, ierr)
           call MPI_Wait(request, status, ierr)
        end if
     end if
     compared = compared + 1
  end do
  if (rank == 1) then
     print '(A)', '10|MPI_Sendrecv|2 x MPI_REAL|2 x MPI_INTEGER'
     print '(A)', '12|MPI_Imrecv|2 x MPI_INTEGER|2 x MPI_REAL'
     print '(A,I0)', 'compared ', compared
     print '(A)', 'PASS ' // BINDING
  end if
  call MPI_Type_free(vector, ierr)
  call MPI_Finalize(ierr)
end program by_fortran
